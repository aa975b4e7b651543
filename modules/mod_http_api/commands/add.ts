/** Adding files and trees. */

import { addEntries, hashOnly } from "../../mod_node/content/adder/adder.ts";
import { addSettings } from "../../mod_node/content/adder/settings.ts";
import type { AddEntry, AddEvent } from "../../mod_node/content/unixfs/add.ts";
import { failure, NodeError } from "../../mod_node/util/errors.ts";
import { printable } from "../../mod_node/util/go/text.ts";
import { type Commands, defineCommand, stream } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import type { Entry, FileEntry } from "../rpc/uploads.ts";
import { addedItem } from "./shapes.ts";

const options = {
  recursive: { type: "bool", aliases: ["r"], help: "Send folders with all that is in them; the sender's work." },
  "dereference-args": { type: "bool", help: "Send what links among the arguments lead to; the sender's work." },
  "stdin-name": { type: "string", help: "Name of what comes from the standard input; the sender's work." },
  hidden: { type: "bool", aliases: ["H"], help: "Send names that begin with a dot, too; the sender's work." },
  ignore: { type: "list", help: "Leave out what fits this pattern; the sender's work." },
  "ignore-rules-path": { type: "string", help: "Leave out what fits a pattern of this file; the sender's work." },
  quiet: { type: "bool", aliases: ["q"], help: "Print hashes only." },
  quieter: { type: "bool", aliases: ["Q"], help: "Print the last hash only." },
  silent: { type: "bool", help: "Tell of directories only." },
  progress: { type: "bool", aliases: ["p"], help: "Tell how far each file has come." },
  trickle: { type: "bool", aliases: ["t"], help: "Lay files out for reading from their beginning." },
  "only-hash": { type: "bool", aliases: ["n"], help: "Compute the CIDs and store nothing." },
  "wrap-with-directory": { type: "bool", aliases: ["w"], help: "Put everything into one directory." },
  chunker: {
    type: "string",
    aliases: ["s"],
    default: "size-262144",
    help: "How files are cut: size-[bytes], rabin-[min]-[avg]-[max] or buzhash.",
  },
  pin: { type: "bool", default: true, help: "Pin what is added, recursively." },
  "raw-leaves": { type: "bool", experimental: true, help: "Store the pieces of files as raw blocks." },
  nocopy: { type: "bool", experimental: true, help: "Refer to the files where they are; implies raw-leaves." },
  fscache: { type: "bool", experimental: true, help: "Look for the pieces in the filestore first." },
  "cid-version": { type: "int", experimental: true, help: "Version of CIDs; 0 unless an option needs 1." },
  hash: { type: "string", default: "sha2-256", experimental: true, help: "Hash function; implies version 1." },
  inline: { type: "bool", experimental: true, help: "Keep small blocks inside their CIDs." },
  "inline-limit": { type: "int", default: 32, experimental: true, help: "Bytes of the largest block kept so." },
} as const;

/**
 * Entries of the body and all below them, in their order, under the path of its place in the tree. `refer`: every
 * file says where else its bytes stand. @throws NodeError for one that does not
 */
async function* below(entries: AsyncIterable<Entry>, refer: boolean): AsyncGenerator<AddEntry> {
  for await (const entry of entries) {
    yield leaf(entry, refer);
    if (entry.kind === "directory") yield* below(entry.entries(), refer);
  }
}

async function* text(target: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(target);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function leaf(entry: Entry, refer: boolean): AddEntry {
  const { path, kind } = entry;
  if (kind === "file") return { path, kind, body: entry.passing, backing: refer ? placeOf(entry) : undefined };
  return { path, kind, body: kind === "symlink" ? text(entry.target) : nothing() };
}

function placeOf({ abspath = "" }: FileEntry): string {
  if (abspath === "") throw new NodeError("missing file path or URL, can't create filestore reference");
  return abspath;
}

export const commands = {
  add: defineCommand({
    help: "Adds files and directories.",
    file: { name: "path", required: true, many: true, help: "The files and directories." },
    options,
    returns: stream(addedItem),
    async *run(call) {
      const { lowLevel: node, files, options: given, signal } = call;
      const settings = addSettings({
        chunker: given.chunker,
        cidVersion: given["cid-version"],
        hash: given.hash,
        rawLeaves: given["raw-leaves"],
        inline: given.inline,
        inlineLimit: given["inline-limit"],
        nocopy: given.nocopy,
        trickle: given.trickle,
        wrap: given["wrap-with-directory"],
        progress: given.progress,
        sharded: node.repo.config.value("Experimental.ShardingEnabled"),
      });
      const { nocopy = false, fscache = false } = given;
      if (nocopy && node.filestore === undefined) throw failure("REFERENCES_OFF");
      const write = call.cidText();
      const entries = below(files.some(), nocopy);
      const events =
        given["only-hash"] === true
          ? hashOnly(entries, settings, node.scratch)
          : addEntries(node, entries, settings, { pin: given.pin, references: nocopy || fscache, signal });
      for await (const event of events) {
        if (given.silent === true && (event.kind === "file" || event.kind === "symlink")) continue;
        yield itemOf(event, write);
      }
    },
    text(item, { options: { quiet, quieter } }) {
      if (item.Hash === undefined) return "";
      return quiet === true || quieter === true ? `${item.Hash}\n` : `added ${item.Hash} ${printable(item.Name)}\n`;
    },
  }),
} satisfies Commands;

type WriteCid = (cid: NonNullable<AddEvent["built"]>["cid"]) => string;

function itemOf({ name, built, bytes = 0 }: AddEvent, write: WriteCid): ValueOf<typeof addedItem> {
  if (built !== undefined) return { Name: name, Hash: write(built.cid), Size: String(built.size) };
  return bytes === 0 ? { Name: name } : { Name: name, Bytes: bytes };
}
