/** `add`: adds files and trees. */
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type AddEntry,
  type AddEvent,
  failure,
  printable,
  textBytes,
  type UnixTime,
  type WriteCid,
} from "modhost/node";
import { type AnyCall, type Commands, type OptionValues, stream, writeCommand } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import type { Entry } from "../rpc/uploads.ts";
import { announceDecision, fastProvide } from "./fast_provide.ts";
import { addedItem, addedItemKubo043 } from "./shapes.ts";

const options = {
  recursive: { type: "bool", aliases: ["r"], help: "Add folders with their contents; done by the client." },
  "dereference-args": { type: "bool", help: "Follow symbolic links among the arguments; done by the client." },
  "dereference-symlinks": {
    type: "bool",
    since: "0.43",
    help: "Follow all symbolic links, in folders too; done by the client.",
  },
  "stdin-name": { type: "string", help: "Name for data from standard input; done by the client." },
  hidden: { type: "bool", aliases: ["H"], help: "Include hidden files; done by the client." },
  ignore: { type: "list", help: "Pattern of names to leave out; done by the client." },
  "ignore-rules-path": { type: "string", help: "File with patterns of names to leave out; done by the client." },
  quiet: { type: "bool", aliases: ["q"], help: "Print hashes only." },
  quieter: { type: "bool", aliases: ["Q"], help: "Print the last hash only." },
  silent: { type: "bool", help: "Report directories only." },
  progress: { type: "bool", aliases: ["p"], help: "Report progress." },
  trickle: { type: "bool", aliases: ["t"], help: "Use the trickle layout, which suits reading from the beginning." },
  "only-hash": { type: "bool", aliases: ["n"], help: "Only compute the CIDs, without storing anything." },
  "wrap-with-directory": { type: "bool", aliases: ["w"], help: "Wrap everything in one directory." },
  chunker: {
    type: "string",
    aliases: ["s"],
    default: "size-262144",
    help: "How files are split into chunks: size-[bytes], rabin-[min]-[avg]-[max] or buzhash.",
  },
  pin: { type: "bool", default: true, help: "Pin the added objects recursively." },
  "raw-leaves": { type: "bool", experimental: true, help: "Store the leaves of files as raw blocks." },
  nocopy: {
    type: "bool",
    experimental: true,
    help: "Refer to the files instead of copying their bytes; implies raw-leaves.",
  },
  fscache: { type: "bool", experimental: true, help: "Check the filestore for existing blocks first." },
  "cid-version": { type: "int", experimental: true, help: "Version of CIDs; 0 unless an option needs 1." },
  hash: { type: "string", default: "sha2-256", experimental: true, help: "Hash function; implies version 1." },
  inline: { type: "bool", experimental: true, help: "Put small blocks into their CIDs." },
  "inline-limit": { type: "int", default: 32, experimental: true, help: "Largest block that is inlined, in bytes." },
  "pin-name": { type: "string", since: "0.43", help: "Name of the pins, at most 255 bytes." },
  mode: { type: "uint", since: "0.43", help: "Permissions of all files and directories, such as 0644; 0 for none." },
  mtime: {
    type: "int64",
    since: "0.43",
    help: "Modification time of all files and directories, in seconds since 1970; 0 for none.",
  },
  "mtime-nsecs": { type: "uint", unset: [0], since: "0.43", help: "Nanoseconds of the modification time." },
  "preserve-mode": { type: "bool", since: "0.43", help: "Keep the permissions that the parts of the body state." },
  "preserve-mtime": { type: "bool", since: "0.43", help: "Keep the times that the parts of the body state." },
  "max-file-links": {
    type: "int",
    since: "0.43",
    help: "Maximum number of links of an inner node of a file; 0 means 174.",
  },
  "max-directory-links": {
    type: "int",
    since: "0.43",
    help: "Number of entries above which a directory is sharded, at the level 0.43; 0 for no limit.",
  },
  "max-hamt-fanout": { type: "int", since: "0.43", help: "Slots of a shard: a power of 2 from 8 to 1024." },
  "empty-dirs": {
    type: "bool",
    aliases: ["E"],
    default: true,
    since: "0.43",
    help: "Keep empty directories; those at the top are always kept.",
  },
  "to-files": {
    type: "string",
    since: "0.43",
    mfs: "into",
    help: "Also add it to the MFS: into this directory if the path ends with a slash, otherwise a single entry as this path.",
  },
  ...fastProvide,
} as const;

/** The level 0.43 takes defaults from the configuration. */
const optionsKubo043 = {
  ...options,
  chunker: { type: "string", aliases: ["s"], help: options.chunker.help },
  hash: { type: "string", unset: [""], experimental: true, help: options.hash.help },
} as const;

/** Number of entries after which other work of the process gets a turn. */
const TURN_ENTRIES = 64;

/**
 * Yields the entries of the body and everything below them, in order, each with its path in the
 * tree. The walk is iterative, because a path can be thousands of levels deep.
 */
async function* below(entries: AsyncIterable<Entry>): AsyncGenerator<AddEntry> {
  const open = [entries[Symbol.asyncIterator]()];
  try {
    for (let last = open.at(-1), steps = 1; last !== undefined; last = open.at(-1), steps += 1) {
      if (steps % TURN_ENTRIES === 0) await nextTurn();
      const { done, value: entry } = await last.next();
      if (done === true) {
        open.pop();
        continue;
      }
      yield leaf(entry);
      if (entry.kind === "directory") open.push(entry.entries()[Symbol.asyncIterator]());
    }
  } finally {
    for (const each of open.reverse()) await each.return?.();
  }
}

async function* text(target: string): AsyncGenerator<Uint8Array> {
  yield textBytes(target);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function leaf(entry: Entry): AddEntry {
  const { path, kind, mode, mtime } = entry;
  const known = { path, mode, mtime };
  if (kind === "file") return { ...known, kind, body: entry.passing, backing: entry.abspath };
  return { ...known, kind, body: kind === "symlink" ? text(entry.target) : nothing() };
}

/** Returns undefined for no time. @throws NodeError for nanoseconds without seconds */
function timeIn(seconds: number | undefined, nanoseconds: number | undefined): UnixTime | undefined {
  if (nanoseconds !== undefined && seconds === undefined) {
    throw failure("OPTION_CONFLICT", { reason: 'option "mtime-nsecs" requires "mtime" to be provided as well' });
  }
  return seconds === undefined || (seconds === 0 && !nanoseconds)
    ? undefined
    : { seconds, nanoseconds: nanoseconds ?? 0 };
}

const SYMLINK_MODE = "01000000777";

/**
 * Returns the mode and time that the part of a top-level entry states. Every line about that entry
 * repeats them.
 */
function saidOf({
  said,
  root,
  kind,
}: AddEvent): Pick<ValueOf<typeof addedItemKubo043>, "Mode" | "Mtime" | "MtimeNsecs"> {
  const mode = kind === "symlink" && root === true ? SYMLINK_MODE : said?.mode && `0${said.mode.toString(8)}`;
  const { seconds, nanoseconds } = said?.mtime ?? {};
  return {
    ...(mode && { Mode: mode }),
    ...(seconds && { Mtime: seconds }),
    ...(nanoseconds && { MtimeNsecs: nanoseconds }),
  };
}

type AddCall = Pick<AnyCall, "node" | "files" | "signal" | "offline" | "level" | "cidText"> & {
  readonly options: OptionValues<typeof optionsKubo043>;
};

async function* added<T>(
  { node, files, options: given, level, signal, offline, cidText }: AddCall,
  itemOf: (event: AddEvent, write: WriteCid) => T,
): AsyncGenerator<T> {
  const write = cidText();
  const events = node.addTree(below(files.some()), {
    ...given,
    cidVersion: given["cid-version"],
    rawLeaves: given["raw-leaves"],
    inlineLimit: given["inline-limit"],
    onlyHash: given["only-hash"],
    wrapWithDirectory: given["wrap-with-directory"],
    pinName: given["pin-name"],
    toFiles: given["to-files"],
    announce: announceDecision(
      { node, level, options: given },
      { content: { isPinned: given.pin, isInFiles: given["to-files"] !== undefined } },
    ),
    mode: given.mode,
    mtime: timeIn(given.mtime, given["mtime-nsecs"]),
    preserveMode: given["preserve-mode"],
    preserveMtime: given["preserve-mtime"],
    maxFileLinks: given["max-file-links"],
    maxDirectoryLinks: given["max-directory-links"],
    maxHamtFanout: given["max-hamt-fanout"],
    emptyDirs: given["empty-dirs"],
    sharding: level.sharding,
    maxChunk: level.maxChunk,
    importDefaults: level.importDefaults,
    names: level.names,
    maxInline: level.maxInline,
    signal,
    offline,
  });
  for await (const event of events) yield itemOf(event, write);
}

type Item = ValueOf<typeof addedItem>;

function itemOf({ name, built, bytes = 0 }: AddEvent, write: WriteCid): Item {
  if (built !== undefined) return { Name: name, Hash: write(built.cid), Size: String(built.size) };
  return bytes === 0 ? { Name: name } : { Name: name, Bytes: bytes };
}

function textOf(item: Item, { quiet, quieter }: AddCall["options"]): string {
  if (item.Hash === undefined) return "";
  return quiet === true || quieter === true ? `${item.Hash}\n` : `added ${item.Hash} ${printable(item.Name)}\n`;
}

const about = {
  help: "Adds files and directories.",
  file: { name: "path", required: true, many: true, help: "The files and directories." },
} as const;

export const commands = {
  add: writeCommand({
    ...about,
    options,
    returns: stream(addedItem),
    run: (call) => added(call, itemOf),
    text: (item, call) => textOf(item, call.options),
  }),
} satisfies Commands;

export const kubo043 = {
  add: writeCommand({
    ...about,
    options: optionsKubo043,
    returns: stream(addedItemKubo043),
    run: (call) =>
      added(call, (event, write) => ({
        ...itemOf(event, write),
        ...(call.options["wrap-with-directory"] === true ? {} : saidOf(event)),
      })),
    text: (item, call) => textOf(item, call.options),
  }),
} satisfies Commands;
