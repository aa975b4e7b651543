/** Links of nodes. */
import { NodeError } from "modhost/node";
import { type Commands, readCommand, stream } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import { refItem } from "./shapes.ts";

/** Errors are separate values in other encodings; in text output they end the stream. */
function lineOf({ Ref, Err }: ValueOf<typeof refItem>): string {
  if (Err !== "") throw new NodeError(Err);
  return `${Ref}\n`;
}

export const commands = {
  refs: readCommand({
    help: "Lists the links of nodes.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "The nodes." }],
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
    async *run({ node, signal }) {
      for await (const { ref, err } of node.refs.local({ signal })) yield { Ref: ref, Err: err };
    },
    text: lineOf,
  }),
} satisfies Commands;
