/** Links of nodes. */
import { type Node, NodeError } from "modhost/node";
import { type Commands, readCommand, stream } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import { refItem } from "./shapes.ts";

/** Errors are separate values in other encodings; in text output they end the stream. */
function lineOf({ Ref, Err }: ValueOf<typeof refItem>): string {
  if (Err !== "") throw new NodeError(Err);
  return `${Ref}\n`;
}

/** @param asRaw as raw blocks of CIDs of version 1, whatever they were stored as */
async function* localRefs(node: Node, asRaw: boolean, signal: AbortSignal): AsyncGenerator<ValueOf<typeof refItem>> {
  for await (const { ref, err } of node.refs.local({ asRaw, signal })) yield { Ref: ref, Err: err };
}

export const commands = {
  refs: readCommand({
    help: "Lists the links of nodes.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "The nodes." }],
    options: {
      format: { type: "string", default: "<dst>", help: "Format of each line, with <src>, <dst> and <linkname>." },
      edges: { type: "bool", aliases: ["e"], help: "Print each link as `<from> -> <to>`." },
      unique: { type: "bool", aliases: ["u"], help: "List each reference only once." },
      recursive: { type: "bool", aliases: ["r"], help: "List links recursively." },
      "max-depth": { type: "int", default: -1, help: "Maximum depth with `recursive`; -1 for no limit." },
    },
    returns: stream(refItem),
    async *run({ node, arguments: { "ipfs-path": paths }, options, signal, offline, cidForm }) {
      const how = { ...options, maxDepth: options["max-depth"], ...cidForm, signal, offline };
      for await (const { ref, err } of node.refs(paths, how)) yield { Ref: ref, Err: err };
    },
    text: lineOf,
  }),
  "refs/local": readCommand({
    help: "Lists all blocks that are stored here.",
    returns: stream(refItem),
    run: ({ node, signal, level }) => localRefs(node, level.storedBlocks === "by multihash", signal),
    text: lineOf,
  }),
  "repo/ls": readCommand({
    help: "Lists all blocks that are stored here, as raw blocks.",
    since: "0.43",
    returns: stream(refItem),
    run: ({ node, signal }) => localRefs(node, true, signal),
    text: lineOf,
  }),
} satisfies Commands;
