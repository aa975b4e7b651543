/** Directory listings. */
import { goJsonText, type LsPage, printable, type UnixTime, type WriteCid } from "modhost/node";
import { columns } from "../rpc/columns.ts";
import {
  type AnyCall,
  type ArgumentValues,
  type Commands,
  Listing,
  type OptionValues,
  readCommand,
  value,
} from "../rpc/command.ts";
import { goModeBits, listTime, modeText, rfc3339 } from "../rpc/file_facts.ts";
import { fields, type ValueOf } from "../rpc/shape.ts";

const linkFields = { Name: "string", Hash: "string", Size: "uint64", Type: "int32", Target: "string" } as const;
const lsLink = fields("LsLink", linkFields);
const lsObject = fields("LsObject", { Hash: "string", Links: [lsLink] });
/** At the level 0.43 links tell mode and time as well. */
const lsLinkToday = fields("LsLink", { ...linkFields, Mode: "uint", ModTime: "time" });
const lsObjectToday = fields("LsObject", { Hash: "string", Links: [lsLinkToday] });

type LsLink = ValueOf<typeof lsLink>;
type LsLinkToday = ValueOf<typeof lsLinkToday>;
type LsObject<L = LsLink> = { readonly Hash: string; readonly Links: readonly L[] };

const types = { unknown: 0, directory: 1, file: 2, symlink: 4 } as const;

type NodeLink = Extract<LsPage, { readonly links: unknown }>["links"][number];

/** An object, or a link of the preceding object. */
type Row = { readonly Hash: string } | NodeLink;

/** Objects are called by what was given for them. */
async function* named(pages: AsyncIterable<LsPage>, given: readonly string[]): AsyncGenerator<readonly Row[]> {
  let objects = 0;
  for await (const page of pages) yield "path" in page ? [{ Hash: given[objects++] ?? page.path }] : page.links;
}

/** How a link is shown: as a value, and the same as JSON. */
interface Shown<L> {
  value(link: NodeLink): L;
  json(link: NodeLink): string;
}

const shownLink = (write: WriteCid): Shown<LsLink> => ({
  value: ({ name, cid, size, type, target }) => ({
    Name: name,
    Hash: write(cid),
    Size: size,
    Type: types[type],
    Target: target,
  }),
  json: (link) => `{${membersOf(link, write)}}`,
});

/** Written without a value for each: lists are long. */
const membersOf = ({ name, cid, size, type, target }: NodeLink, write: WriteCid): string =>
  `"Name":${goJsonText(name)},"Hash":${goJsonText(write(cid))},"Size":${size},"Type":${types[type]},"Target":${goJsonText(target)}`;

/** At the level 0.43. */
const shownToday = (write: WriteCid): Shown<LsLinkToday> => ({
  value: (link) => ({ ...shownLink(write).value(link), ...factsOf(link) }),
  json(link) {
    const { Mode, ModTime } = factsOf(link);
    return `{${membersOf(link, write)},"Mode":${Mode},"ModTime":${goJsonText(ModTime)}}`;
  },
});

const NO_TIME = "0001-01-01T00:00:00Z";

/** As the reference does it, a node that has a mode and no time is of 1970, and a symlink has no mode. */
function factsOf({ type, mode, mtime }: NodeLink): Pick<LsLinkToday, "Mode" | "ModTime"> {
  const time = mtime ?? (mode === undefined ? undefined : { seconds: 0, nanoseconds: 0 });
  const permissions = type === "symlink" ? 0 : (mode ?? 0);
  return {
    Mode: permissions + (type === "directory" && permissions > 0 ? goModeBits.directory : 0),
    ModTime: time === undefined ? NO_TIME : rfc3339(time),
  };
}

class ObjectListing<L> extends Listing<Row> {
  readonly #shown: Shown<L>;

  constructor(pages: AsyncIterable<readonly Row[]>, shown: Shown<L>) {
    super("Objects", pages);
    this.#shown = shown;
  }

  override whole(rows: readonly Row[]) {
    const objects: { readonly Hash: string; readonly Links: L[] }[] = [];
    for (const row of rows) {
      if ("cid" in row) objects.at(-1)?.Links.push(this.#shown.value(row));
      else objects.push({ ...row, Links: [] });
    }
    return { Objects: objects };
  }

  override async *json(pages: AsyncIterable<readonly Row[]>): AsyncGenerator<string, void, undefined> {
    let before = '{"Objects":[';
    let between = "";
    for await (const page of pages) {
      let text = "";
      for (const row of page) {
        if ("cid" in row) {
          text += between + this.#shown.json(row);
          between = ",";
        } else {
          text += `${before}{"Hash":${goJsonText(row.Hash)},"Links":[`;
          before = "]},";
          between = "";
        }
      }
      yield text;
    }
    yield "]}]}";
  }
}

async function* streamed<L>(pages: AsyncIterable<readonly Row[]>, shown: Shown<L>) {
  let path = "";
  for await (const page of pages) {
    for (const row of page) {
      if ("cid" in row) yield { Objects: [{ Hash: path, Links: [shown.value(row)] }] };
      else path = row.Hash;
    }
  }
}

interface Table {
  readonly headings: boolean;
  readonly sizes: boolean;
  readonly titled: boolean;
}

/** What `long` puts before and behind hash and size. */
interface LongColumns {
  readonly mode: string;
  readonly time: string;
}

/** Table rows for one object. */
function rows<L extends LsLink>(
  { Hash, Links }: LsObject<L>,
  { headings, sizes, titled }: Table,
  more?: (link: L) => LongColumns,
): string[][] {
  const row = (hash: string, size: string, name: string, long: LongColumns | undefined) => [
    ...(long === undefined ? [] : [long.mode]),
    hash,
    ...(sizes ? [size] : []),
    ...(long === undefined ? [] : [long.time]),
    name,
  ];
  return [
    ...(titled ? [[`${Hash}:`]] : []),
    ...(headings ? [row("Hash", "Size", "Name", more && { mode: "Mode", time: "ModTime" })] : []),
    ...Links.map((link) => {
      const { Hash: hash, Size, Type, Name } = link;
      return Type === types.directory
        ? row(hash, "-", `${printable(Name)}/`, more?.(link))
        : row(hash, String(Size), printable(Name), more?.(link));
    }),
  ];
}

/** As `ls -l` has them; a dash for what is not stated. */
const longColumns = ({ Mode, ModTime, Type }: LsLinkToday): LongColumns => ({
  mode: Mode === 0 ? "-" : modeText(Mode, Type === types.directory ? "d" : "-"),
  time: ModTime === NO_TIME ? "-" : listTime(timeOf(ModTime)),
});

const timeOf = (text: string): UnixTime => ({ seconds: Math.floor(Date.parse(text) / 1000), nanoseconds: 0 });

const about = {
  help: "Lists directories, and the links of other nodes.",
  readOnly: true,
  arguments: [{ name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "What to list." }],
} as const;

const options = {
  headers: { type: "bool", aliases: ["v"], help: "Print column headings." },
  "resolve-type": {
    type: "bool",
    default: true,
    help: "Show the type of each entry, which reads the entry's block.",
  },
  size: { type: "bool", default: true, help: "Show the size of each entry, which reads the entry's block." },
  stream: { type: "bool", aliases: ["s"], help: "Return entries as they are found, unsorted." },
  long: { type: "bool", aliases: ["l"], since: "0.43", help: "Print mode and time, at the level 0.43." },
} as const;

type LsCall = Pick<AnyCall, "node" | "signal" | "offline" | "given"> & {
  readonly arguments: ArgumentValues<typeof about.arguments>;
  readonly options: OptionValues<typeof options>;
};

function listing<L>({ node, arguments: args, options, given, signal, offline }: LsCall, shown: Shown<L>) {
  const { stream, size, "resolve-type": resolveType } = options;
  const found = node.ls.pages(args["ipfs-path"], { stream, size, resolveType, signal, offline });
  const pages = named(found, given);
  return stream === true ? streamed(pages, shown) : new ObjectListing(pages, shown);
}

function textOf<L extends LsLink>(
  objects: readonly LsObject<L>[],
  { options, given }: Pick<LsCall, "options" | "given">,
  more?: (link: L) => LongColumns,
): string {
  const stream = options.stream === true;
  const table = {
    headings: !stream && options.headers === true,
    sizes: options.size,
    titled: !stream && given.length > 1,
  };
  const lines = objects.flatMap((object, at) => [
    ...(table.titled && at > 0 ? [[""]] : []),
    ...rows(object, table, more),
  ]);
  return columns(lines, stream ? 10 : 1);
}

export const commands = {
  ls: readCommand({
    ...about,
    options,
    returns: value(fields("LsOutput", { Objects: [lsObject] })),
    run: (call) => listing(call, shownLink(call.cidText())),
    text: ({ Objects }, call) => textOf(Objects, call),
  }),
} satisfies Commands;

export const today = {
  ls: readCommand({
    ...about,
    options,
    returns: value(fields("LsOutput", { Objects: [lsObjectToday] })),
    run: (call) => listing(call, shownToday(call.cidText())),
    text: ({ Objects }, call) => textOf(Objects, call, call.options.long === true ? longColumns : undefined),
  }),
} satisfies Commands;
