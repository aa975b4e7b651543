/** The mutable namespace. */

import { inSession } from "../../mod_node/content/dag/reader.ts";
import { cidSettings } from "../../mod_node/content/mfs/cid_settings.ts";
import { describe, entriesIn, linksIn, localityOf, statOf } from "../../mod_node/content/mfs/list.ts";
import {
  changeCid,
  cidAt,
  copy,
  flush,
  makeDirectory,
  move,
  remove,
  type Source,
} from "../../mod_node/content/mfs/operations.ts";
import { loosePath, type NamespacePath, nameOf, namespacePath } from "../../mod_node/content/mfs/path.ts";
import { fileAt, writeFile } from "../../mod_node/content/mfs/write_file.ts";
import { readFile } from "../../mod_node/content/unixfs/read.ts";
import { compareNames } from "../../mod_node/formats/dag_pb/dag_pb.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { sizeText } from "../../mod_node/util/size.ts";
import {
  type AnyCall,
  type Argument,
  bytes,
  type Commands,
  defineCommand,
  defineGroup,
  Listing,
  nothing,
  raw,
  value,
} from "../rpc/command.ts";
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";
import { cidOptions } from "./shapes.ts";

const group = defineGroup({
  help: "Work with files and directories that change, under one root.",
  options: {
    flush: { type: "bool", aliases: ["f"], default: true, help: "Write the change through to the root." },
  },
});

const path = [{ name: "path", required: true, help: "The path in the namespace." }] as const;
const pathOrRoot = [{ name: "path", default: "/", help: "The path in the namespace." }] as const;
const dest = { name: "dest", required: true, help: "Where to; a directory when it ends in a slash." } as const;
const source = (help: string) => ({ name: "source", required: true, help }) as const satisfies Argument;

const statFormat = "<hash>\nSize: <size>\nCumulativeSize: <cumulsize>\nChildBlocks: <childs>\nType: <type>";

const statOutput = fields("statOutput", {
  Hash: "string",
  Size: "uint64",
  CumulativeSize: "uint64",
  Blocks: "int",
  Type: "string",
  "WithLocality?": "bool",
  "Local?": "bool",
  "SizeLocal?": "uint64",
});

const lsEntry = fields("NodeListing", { Name: "string", Type: "int", Size: "int64", Hash: "string" });
type LsEntry = ValueOf<typeof lsEntry>;

const types = { file: 0, directory: 1 } as const;

interface CidFlags {
  readonly "cid-version": number | undefined;
  readonly hash: string | undefined;
}

const settingsOf = ({ "cid-version": version, hash }: CidFlags) => cidSettings({ version, hash });

/** What of a call belongs to a change. */
const changing = ({
  options,
  signal,
  offline,
}: Pick<AnyCall, "signal" | "offline"> & { options: { flush: boolean } }) => ({
  flush: options.flush,
  signal,
  offline,
});

/** A path below /ipfs counts before one of the namespace. */
const isContent = ({ text }: NamespacePath): boolean => text.startsWith("/ipfs/");

async function contentAt(text: string, call: AnyCall) {
  const { cid, remainder } = await call.lowLevel.resolve(text, call);
  if (remainder.length > 0) throw new NodeError("no such link found");
  return cid;
}

async function sourceOf(given: string, call: AnyCall): Promise<Source> {
  const found = namespacePath(given);
  const text = `/${found.segments.join("/")}`;
  const name = nameOf(found) as string | undefined;
  if (!isContent(found)) return { text, name, at: found };
  try {
    const at = await contentAt(text, call);
    await call.lowLevel.reader(call)(at);
    return { text, name, at };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`cp: cannot get node from path ${text}: ${error.message}`, { cause: error });
  }
}

interface StatFlags {
  readonly format: string;
  readonly hash: boolean | undefined;
  readonly size: boolean | undefined;
}

/** @throws NodeError when several are asked for */
function formatOf({ format, hash, size }: StatFlags): string {
  if ([hash === true, size === true, format !== statFormat].filter(Boolean).length > 1) {
    const message = "format was set by multiple options. Only one format option is allowed";
    throw new NodeError(message, { kind: "client" });
  }
  if (hash === true) return "<hash>";
  return size === true ? "<cumulsize>" : format;
}

async function* namesIn(links: ReturnType<typeof linksIn>): AsyncGenerator<LsEntry> {
  for await (const { name } of links) yield { Name: name, Type: 0, Size: 0, Hash: "" };
}

async function* longEntries(entries: ReturnType<typeof entriesIn>): AsyncGenerator<LsEntry> {
  for await (const { name, kind, size, cid } of entries) {
    yield { Name: name, Type: types[kind], Size: size, Hash: cid.toString() };
  }
}

export const commands = {
  files: group,
  "files/chcid": defineCommand({
    group,
    help: "Changes the version or the hash function of a directory's CID, and of what is made in it later.",
    arguments: pathOrRoot,
    options: cidOptions,
    returns: nothing,
    async run(call) {
      const { lowLevel: node, arguments: given, options } = call;
      await changeCid(node.files, loosePath(given.path), settingsOf(options), changing(call));
    },
  }),
  "files/cp": defineCommand({
    group,
    help: "Puts a file or tree into the namespace, by path; nothing is copied.",
    arguments: [source("What: a path such as `/ipfs/<cid>`, or one of the namespace."), dest],
    returns: nothing,
    async run(call) {
      const { lowLevel: node, arguments: given } = call;
      const to = namespacePath(given.dest);
      await copy(node.files, await sourceOf(given.source, call), to, changing(call));
    },
  }),
  "files/flush": defineCommand({
    group,
    help: "Writes all changes below a path through to the root.",
    arguments: pathOrRoot,
    returns: value(fields("flushRes", { Cid: "string" })),
    async run(call) {
      const write = call.cidText();
      return { Cid: write(await flush(call.lowLevel.files, loosePath(call.arguments.path), call)) };
    },
    text: ({ Cid }) => `${Cid}\n`,
  }),
  "files/ls": defineCommand({
    group,
    help: "Lists a directory.",
    arguments: pathOrRoot,
    options: {
      long: { type: "bool", aliases: ["l"], help: "Tell size, type and hash, too." },
      U: { type: "bool", help: "Do not sort: print in the order of the directory." },
    },
    returns: value(fields("filesLsOutput", { Entries: nullable([lsEntry]) })),
    async run(call) {
      const { lowLevel: node, options } = call;
      const found = namespacePath(call.arguments.path);
      const write = call.cidText();
      const read = node.reader(call);
      const cid = await cidAt(node.files, found, call);
      const block = await read(cid);
      const { kind, size } = describe("", cid, block);
      if (kind === "directory") {
        const entries =
          options.long === true ? longEntries(entriesIn(cid, block, read)) : namesIn(linksIn(cid, block, read));
        return new Listing("Entries", entries);
      }
      // The name is what stands behind the last slash.
      const name = found.inside ? "" : nameOf(found);
      const facts =
        options.long === true ? { Type: types.file, Size: size, Hash: write(cid) } : { Type: 0, Size: 0, Hash: "" };
      return { Entries: [{ Name: name, ...facts }] };
    },
    text({ Entries }, { options: { U, long } }) {
      const entries = Entries ?? [];
      const shown = U === true ? entries : entries.toSorted((one, other) => compareNames(one.Name, other.Name));
      return shown
        .map(({ Name, Type, Hash, Size }) =>
          long === true ? `${Name}${Type === types.directory ? "/" : ""}\t${Hash}\t${Size}\n` : `${Name}\n`,
        )
        .join("");
    },
  }),
  "files/mkdir": defineCommand({
    group,
    help: "Makes a directory.",
    arguments: path,
    options: {
      parents: { type: "bool", aliases: ["p"], help: "Make those above it, too; one that is there is no error." },
      ...cidOptions,
    },
    returns: nothing,
    async run(call) {
      const { lowLevel: node, options } = call;
      const made = namespacePath(call.arguments.path);
      const settings = settingsOf(options);
      await makeDirectory(node.files, made, { ...changing(call), parents: options.parents === true, settings });
    },
  }),
  "files/mv": defineCommand({
    group,
    help: "Moves a file or directory.",
    arguments: [source("What to move."), dest],
    returns: nothing,
    async run(call) {
      const { lowLevel: node, arguments: given } = call;
      await move(node.files, namespacePath(given.source), namespacePath(given.dest), changing(call));
    },
  }),
  "files/read": defineCommand({
    group,
    help: "Gives the bytes of a file.",
    arguments: path,
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Byte to begin with." },
      count: { type: "int64", aliases: ["n"], help: "Most bytes to give." },
    },
    returns: raw,
    async run(call) {
      const { lowLevel: node, options } = call;
      const { offset = 0, count } = options;
      const { node: file, size } = await fileAt(node.files, namespacePath(call.arguments.path), call);
      if (offset < 0) throw new NodeError("cannot specify negative offset");
      if (offset > size) throw new NodeError(`offset was past end of file (${offset} > ${size})`);
      if (count !== undefined && count < 0) throw new NodeError("cannot specify negative 'count'");
      return bytes(readFile(file, node.reader(inSession(call)), { offset, length: count }));
    },
  }),
  "files/rm": defineCommand({
    group,
    help: "Removes a file, or with `recursive` a directory.",
    arguments: [{ name: "path", required: true, variadic: true, help: "What to remove; only the first is looked at." }],
    options: {
      recursive: { type: "bool", aliases: ["r"], help: "Remove directories with all that is in them." },
      force: { type: "bool", help: "Remove whatever is there; what is missing is no error." },
    },
    returns: nothing,
    async run(call) {
      const { lowLevel: node, options } = call;
      const removed = namespacePath(call.arguments.path[0] as string);
      const how = { recursive: options.recursive === true, force: options.force === true };
      await remove(node.files, removed, { ...changing(call), ...how });
    },
  }),
  "files/stat": defineCommand({
    group,
    help: "Tells what a path is.",
    arguments: [{ name: "path", required: true, help: "A path of the namespace, or one such as `/ipfs/<cid>`." }],
    options: {
      format: {
        type: "string",
        default: statFormat,
        help: "Format of the text: `<hash>`, `<size>`, `<cumulsize>`, `<type>`, `<childs>` stand for what they name.",
      },
      hash: { type: "bool", help: "Print the hash alone; the same as the format `<hash>`." },
      size: { type: "bool", help: "Print the size alone; the same as the format `<cumulsize>`." },
      "with-local": { type: "bool", help: "Tell how much of it is stored here." },
    },
    returns: value(statOutput),
    async run(call) {
      const { lowLevel: node, options, signal } = call;
      formatOf(options);
      const found = namespacePath(call.arguments.path);
      const write = call.cidText();
      const cid = isContent(found) ? await contentAt(found.text, call) : await cidAt(node.files, found, call);
      const { kind, size, cumulativeSize, children } = statOf(cid, await node.reader(call)(cid));
      const stat = { Hash: write(cid), Size: size, CumulativeSize: cumulativeSize, Blocks: children, Type: kind };
      if (options["with-local"] !== true) return stat;
      const local = await localityOf(node.blocks, cid, signal);
      return {
        ...stat,
        WithLocality: true,
        ...(local.whole && { Local: true }),
        ...(local.size > 0 && { SizeLocal: local.size }),
      };
    },
    text(stat, { options }) {
      const values: Readonly<Record<string, unknown>> = {
        hash: stat.Hash,
        size: stat.Size,
        cumulsize: stat.CumulativeSize,
        childs: stat.Blocks,
        type: stat.Type,
      };
      const line = formatOf(options).replace(/<(hash|size|cumulsize|childs|type)>/g, (_, name: string) =>
        String(values[name]),
      );
      if (stat.WithLocality !== true) return `${line}\n`;
      const { SizeLocal = 0, CumulativeSize } = stat;
      const [local, all] = [Number(SizeLocal), Number(CumulativeSize)];
      return `${line}\nLocal: ${sizeText(local)} of ${sizeText(all)} (${((100 * local) / all).toFixed(2)}%)\n`;
    },
  }),
  "files/write": defineCommand({
    group,
    help: "Writes into a file.",
    arguments: path,
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Byte at which to begin." },
      create: { type: "bool", aliases: ["e"], help: "Make the file when it is not there." },
      parents: { type: "bool", aliases: ["p"], help: "Make the directories above it, too." },
      truncate: { type: "bool", aliases: ["t"], help: "Empty the file first." },
      count: { type: "int64", aliases: ["n"], help: "Most bytes to take." },
      "raw-leaves": { type: "bool", experimental: true, help: "Use raw blocks for new leaves." },
      ...cidOptions,
    },
    file: { name: "data", required: true, help: "The bytes." },
    returns: nothing,
    async run(call) {
      const { lowLevel: node, files, options } = call;
      const to = namespacePath(call.arguments.path);
      const settings = settingsOf(options);
      await writeFile(node.files, to, async () => (await files.one()).passing, {
        ...changing(call),
        offset: options.offset ?? 0,
        count: options.count,
        create: options.create === true,
        parents: options.parents === true,
        truncate: options.truncate === true,
        rawLeaves: options["raw-leaves"],
        settings,
      });
    },
  }),
} satisfies Commands;
