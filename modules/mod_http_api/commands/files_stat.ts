/**
 * `files/stat`: shows facts about a path of the mutable namespace (MFS), or about a content path.
 */
import { type FilesStatResult, NodeError, sizeText } from "modhost/node";
import { type AnyCall, type Commands, readCommand, value } from "../rpc/command.ts";
import { goMode, goModeText, longTime } from "../rpc/file_facts.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";
import { group } from "./files.ts";

const statFormat = "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>";

const statFormatKubo043 = `${statFormat}\nMode: <mode> (<mode-octal>)\nMtime: <mtime>`;

const statFields = {
  Hash: "string",
  Size: "uint64",
  CumulativeSize: "uint64",
  Blocks: "int",
  Type: "string",
  "WithLocality?": "bool",
  "Local?": "bool",
  "SizeLocal?": "uint64",
} as const;
const statOutput = fields("statOutput", statFields);
/** The level 0.43 also returns mode and time. */
const statOutputKubo043 = fields("statOutput", {
  ...statFields,
  "Mtime?": "int64",
  "MtimeNsecs?": "int",
  "Mode?": "string",
});
type Stat = ValueOf<typeof statOutput>;
type StatKubo043 = ValueOf<typeof statOutputKubo043>;

interface StatFlags {
  readonly format: string;
  readonly hash: boolean | undefined;
  readonly size: boolean | undefined;
}

/** @throws NodeError if more than one format is requested */
function formatOf({ format, hash, size }: StatFlags, usual: string, fault = ""): string {
  if ([hash === true, size === true, format !== usual].filter(Boolean).length > 1) {
    const message = `${fault}format was set by multiple options. Only one format option is allowed`;
    throw new NodeError("OPTION_CONFLICT", message, { kind: "client" });
  }
  if (hash === true) return "<hash>";
  return size === true ? "<cumulsize>" : format;
}

const statOptions = {
  format: {
    type: "string",
    default: statFormat,
    help: "Format of the text, with `<hash>`, `<size>`, `<cumulsize>`, `<type>` and `<childs>`.",
  },
  hash: { type: "bool", help: "Print only the hash; the same as the format `<hash>`." },
  size: { type: "bool", help: "Print only the size; the same as the format `<cumulsize>`." },
  "with-local": { type: "bool", help: "Also show how much of it is stored locally." },
} as const;

const aboutStat = {
  group,
  help: "Shows information about a file or directory.",
  arguments: [
    {
      name: "path",
      required: true,
      path: true,
      mfs: "look",
      help: "A path in the namespace, or a path such as `/ipfs/<cid>`.",
    },
  ],
} as const;

type StatCall = Pick<AnyCall, "node" | "signal" | "offline" | "cidText" | "level"> & {
  readonly arguments: { readonly path: string };
  readonly options: { readonly "with-local": boolean | undefined };
};

async function statOf(
  { node, arguments: { path }, options, signal, offline, cidText, level }: StatCall,
  symlinks = false,
): Promise<{ readonly stat: FilesStatResult; readonly shown: Stat }> {
  const write = cidText();
  const how = { signal, offline, resolvesNames: level.filesResolveNames };
  const stat = await node.files.stat(path, { withLocal: options["with-local"], symlinks, ...how });
  const shown = {
    Hash: write(stat.cid),
    Size: stat.size,
    CumulativeSize: stat.cumulativeSize,
    Blocks: stat.blocks,
    Type: stat.type,
    ...(stat.withLocality && { WithLocality: true }),
    ...(stat.local && { Local: true }),
    ...(stat.sizeLocal !== undefined && { SizeLocal: stat.sizeLocal }),
  };
  return { stat, shown };
}

/** Returns the mode in Go's form. A symlink without a mode has all permissions. */
const modeOf = ({ type, isSymlink, mode }: FilesStatResult): number =>
  isSymlink === true ? goMode(mode, "symlink") || goMode(0o777, "symlink") : goMode(mode, type);

function statFacts(stat: FilesStatResult): Pick<StatKubo043, "Mode" | "Mtime" | "MtimeNsecs"> {
  const mode = modeOf(stat);
  return {
    ...(stat.mtime?.secs && { Mtime: stat.mtime.secs }),
    ...(stat.mtime?.nsecs && { MtimeNsecs: stat.mtime.nsecs }),
    ...(mode !== 0 && { Mode: mode.toString(8).padStart(4, "0") }),
  };
}

function statText(stat: Stat, format: string, more: Readonly<Record<string, string>> = {}): string {
  const values: Readonly<Record<string, unknown>> = {
    hash: stat.Hash,
    size: stat.Size,
    cumulsize: stat.CumulativeSize,
    childs: stat.Blocks,
    type: stat.Type,
    ...more,
  };
  const line = format.replace(/<([a-z-]+)>/g, (whole, name: string) => String(values[name] ?? whole));
  if (stat.WithLocality !== true) return `${line}\n`;
  const { SizeLocal = 0, CumulativeSize } = stat;
  const local = Number(SizeLocal);
  const all = Number(CumulativeSize);
  return `${line}\nLocal: ${sizeText(local)} of ${sizeText(all)} (${((100 * local) / all).toFixed(2)}%)\n`;
}

const NOT_SET = "not set";

/** Returns the additional placeholders of the format at the level 0.43. */
function factWords({ Mode, Mtime, MtimeNsecs }: StatKubo043): Record<string, string> {
  const mode = Number.parseInt(Mode ?? "0", 8);
  const time = Mtime === undefined ? undefined : { seconds: Mtime, nanoseconds: MtimeNsecs ?? 0 };
  return {
    mode: Mode === undefined ? NOT_SET : goModeText(mode),
    "mode-octal": Mode === undefined ? NOT_SET : `0${(mode & 0o777).toString(8)}`,
    mtime: time === undefined ? NOT_SET : longTime(time),
    "mtime-secs": time === undefined ? NOT_SET : String(time.seconds),
    "mtime-nsecs": time === undefined ? NOT_SET : String(time.nanoseconds),
  };
}

export const commands = {
  "files/stat": readCommand({
    ...aboutStat,
    options: statOptions,
    returns: value(statOutput),
    async run(call) {
      formatOf(call.options, statFormat);
      return (await statOf(call)).shown;
    },
    text: (stat, { options }) => statText(stat, formatOf(options, statFormat)),
  }),
} satisfies Commands;

export const kubo043 = {
  "files/stat": readCommand({
    ...aboutStat,
    options: {
      ...statOptions,
      format: {
        type: "string",
        default: statFormatKubo043,
        help: "Format of the text, with `<hash>`, `<size>`, `<cumulsize>`, `<type>`, `<childs>`, `<mode>`, `<mode-octal>`, `<mtime>`, `<mtime-secs>` and `<mtime-nsecs>`.",
      },
    },
    returns: value(statOutputKubo043),
    async run(call) {
      formatOf(call.options, statFormatKubo043, "invalid parameters: ");
      const { stat, shown } = await statOf(call, true);
      return { ...shown, ...statFacts(stat) };
    },
    text: (stat, { options }) => statText(stat, formatOf(options, statFormatKubo043), factWords(stat)),
  }),
} satisfies Commands;
