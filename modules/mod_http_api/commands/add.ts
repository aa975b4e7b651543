/** Adding files and trees. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AddEntry, type AddEvent, printable, type WriteCid } from "modhost/node";
import { type Commands, stream, writeCommand } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import type { Entry } from "../rpc/uploads.ts";
import { addedItem } from "./shapes.ts";

const options = {
  recursive: { type: "bool", aliases: ["r"], help: "Add folders with their contents; done by the client." },
  "dereference-args": { type: "bool", help: "Follow symbolic links among the arguments; done by the client." },
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
} as const;

/** Entries after which other work of the process gets its turn. */
const TURN_ENTRIES = 64;

/**
 * Entries of the body and everything below them, in order, each with its path in the tree. Iterative, since a name may
 * have thousands of levels.
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
  yield Buffer.from(target);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function leaf(entry: Entry): AddEntry {
  const { path, kind } = entry;
  if (kind === "file") return { path, kind, body: entry.passing, backing: entry.abspath };
  return { path, kind, body: kind === "symlink" ? text(entry.target) : nothing() };
}

export const commands = {
  add: writeCommand({
    help: "Adds files and directories.",
    file: { name: "path", required: true, many: true, help: "The files and directories." },
    options,
    returns: stream(addedItem),
    async *run({ node, files, options: given, signal, offline, cidText }) {
      const write = cidText();
      const events = node.addTree(below(files.some()), {
        ...given,
        cidVersion: given["cid-version"],
        rawLeaves: given["raw-leaves"],
        inlineLimit: given["inline-limit"],
        onlyHash: given["only-hash"],
        wrapWithDirectory: given["wrap-with-directory"],
        signal,
        offline,
      });
      for await (const event of events) yield itemOf(event, write);
    },
    text(item, { options: { quiet, quieter } }) {
      if (item.Hash === undefined) return "";
      return quiet === true || quieter === true ? `${item.Hash}\n` : `added ${item.Hash} ${printable(item.Name)}\n`;
    },
  }),
} satisfies Commands;

function itemOf({ name, built, bytes = 0 }: AddEvent, write: WriteCid): ValueOf<typeof addedItem> {
  if (built !== undefined) return { Name: name, Hash: write(built.cid), Size: String(built.size) };
  return bytes === 0 ? { Name: name } : { Name: name, Bytes: bytes };
}
