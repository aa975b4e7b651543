/** What is done to all blocks: collecting those that nothing keeps, and checking them. */

import { verifyBlocks } from "../../mod_node/storage/blockstore/verify.ts";
import { NodeError } from "../../mod_node/util/errors.ts";
import { type Commands, defineCommand, stream } from "../rpc/command.ts";
import { fields, nullable } from "../rpc/shape.ts";

export const commands = {
  "repo/gc": defineCommand({
    help: "Removes all blocks that nothing keeps.",
    options: {
      "stream-errors": { type: "bool", help: "Send failures among the results." },
      quiet: { type: "bool", aliases: ["q"], help: "Print CIDs only." },
    },
    returns: stream(fields("GcResult", { Key: nullable("link"), "Error?": "string" })),
    async *run({ lowLevel: node, options, signal }) {
      const streamErrors = options["stream-errors"] === true;
      const errors: string[] = [];
      for await (const result of node.collect(signal)) {
        if ("removed" in result) {
          yield { Key: result.removed };
          continue;
        }
        errors.push(result.error);
        if (streamErrors) yield { Key: null, Error: result.error };
      }
      if (errors.length > 0) {
        throw new NodeError(streamErrors ? "encountered errors during gc run" : errors.join("; "));
      }
    },
    text({ Key, Error: failed }, { options }) {
      if (failed !== undefined) return `Error: ${failed}\n`;
      return options.quiet === true ? `${Key}\n` : `removed ${Key}\n`;
    },
  }),
  "repo/verify": defineCommand({
    help: "Reads every block and checks it against its CID.",
    returns: stream(fields("VerifyProgress", { Msg: "string", Progress: "int" })),
    async *run({ lowLevel: node, signal }) {
      let blocks = 0;
      let corrupt = false;
      for await (const { cid, fault } of verifyBlocks(node.blocks.store, signal)) {
        if (fault !== undefined) {
          corrupt = true;
          yield { Msg: `block ${cid} was corrupt (${fault})`, Progress: 0 };
        }
        blocks += 1;
        yield { Msg: "", Progress: blocks };
      }
      if (corrupt) throw new NodeError("verify complete, some blocks were corrupt");
      yield { Msg: "verify complete, all blocks validated.", Progress: 0 };
    },
    text: ({ Msg, Progress }) => (Msg === "" ? `${Progress} blocks processed.\r` : `${Msg}\n`),
  }),
} satisfies Commands;
