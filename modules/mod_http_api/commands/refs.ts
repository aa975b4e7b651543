/** Links of nodes. */

import { inSession } from "../../mod_node/content/dag/reader.ts";
import { refs } from "../../mod_node/content/dag/refs.ts";
import { bulkReader } from "../../mod_node/content/unixfs/open.ts";
import { CidNumberMap } from "../../mod_node/formats/cid/set.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type Commands, defineCommand, stream } from "../rpc/command.ts";
import type { ValueOf } from "../rpc/shape.ts";
import { refItem } from "./shapes.ts";

/** A failure that is a line of its own elsewhere ends the text. */
function lineOf({ Ref, Err }: ValueOf<typeof refItem>): string {
  if (Err !== "") throw new NodeError(Err);
  return `${Ref}\n`;
}

export const commands = {
  refs: defineCommand({
    help: "Lists the links of nodes.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "The nodes." }],
    options: {
      format: { type: "string", default: "<dst>", help: "Form of a line, made of <src>, <dst> and <linkname>." },
      edges: { type: "bool", aliases: ["e"], help: "Print each link as `<from> -> <to>`." },
      unique: { type: "bool", aliases: ["u"], help: "List nothing twice." },
      recursive: { type: "bool", aliases: ["r"], help: "List the links of what is linked to, too." },
      "max-depth": { type: "int", default: -1, help: "With `recursive`, how far down to go; -1: to the end." },
    },
    returns: stream(refItem),
    async *run(call) {
      const { lowLevel: node, options, signal } = call;
      const write = call.cidText();
      if (options.edges === true && options.format !== "<dst>") {
        throw new NodeError("using format argument with edges is not allowed");
      }
      const format = options.edges === true ? "<src> -> <dst>" : options.format;
      const line = ({ from, to, name }: { from: Parameters<typeof write>[0]; to: typeof from; name: string }) =>
        format
          .replaceAll("<src>", () => write(from))
          .replaceAll("<dst>", () => write(to))
          .replaceAll("<linkname>", () => name);
      const roots = [];
      for (const path of call.arguments["ipfs-path"]) roots.push((await node.resolve(path, call)).cid);
      const maxDepth = options.recursive === true ? options["max-depth"] : 1;
      const walk = { unique: options.unique === true, maxDepth, met: new CidNumberMap(), signal };
      const readRoot = node.reader(inSession(call));
      const read = bulkReader(readRoot);
      for (const root of roots) {
        try {
          for await (const ref of refs(root, await readRoot(root), { ...walk, read }))
            yield { Ref: line(ref), Err: "" };
        } catch (error) {
          if (!(error instanceof NodeError)) throw error;
          yield { Ref: "", Err: error.message };
        }
      }
    },
    text: lineOf,
  }),
  "refs/local": defineCommand({
    help: "Lists all blocks that are stored here.",
    returns: stream(refItem),
    async *run({ lowLevel: node, signal }) {
      for await (const cid of node.blocks.store.keys()) {
        if (signal.aborted) return;
        yield { Ref: cid.toString(), Err: "" };
      }
    },
    text: lineOf,
  }),
} satisfies Commands;
