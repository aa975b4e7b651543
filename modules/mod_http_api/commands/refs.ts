/** `refs`: links of nodes, and the stored blocks. */
import { failure, parseCid } from "modhost/node";
import { type AnyCall, type Commands, readCommand, stream } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import { refItem } from "./shapes.ts";

/** In other encodings, an error is a value of its own. In text output it ends the stream. */
function lineOf({ Ref, Err }: ValueOf<typeof refItem>): string {
  if (Err !== "") throw failure("ITEM_FAILED", { reason: Err });
  return `${Ref}\n`;
}

type LocalCall = Pick<AnyCall, "node" | "signal" | "cidText">;

/** Yields raw CIDs of version 1, whatever CIDs the blocks were stored under. */
async function* rawRefs({ node, signal, cidText }: LocalCall): AsyncGenerator<ValueOf<typeof refItem>> {
  const write = cidText();
  for await (const { ref, err } of node.refs.local({ asRaw: true, signal })) {
    yield { Ref: err === "" ? write(parseCid(ref)) : ref, Err: err };
  }
}

async function* storedRefs({ node, signal }: LocalCall): AsyncGenerator<ValueOf<typeof refItem>> {
  for await (const { ref, err } of node.refs.local({ signal })) yield { Ref: ref, Err: err };
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
    run: (call) => (call.level.storedBlocks === "by multihash" ? rawRefs(call) : storedRefs(call)),
    text: lineOf,
  }),
  "repo/ls": readCommand({
    help: "Lists all blocks that are stored here, as raw blocks.",
    since: "0.43",
    returns: stream(refItem),
    run: (call) => rawRefs(call),
    text: lineOf,
  }),
} satisfies Commands;
