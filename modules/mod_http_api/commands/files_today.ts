/** Changes of the mutable namespace (MFS) as Kubo 0.43 makes them: the root keeps its form, and every path is tried to be removed. */
import { NodeError } from "modhost/node";
import { type Commands, stream, writeCommand } from "../rpc/command.ts";
import { aboutChcid, changing, group, path, removed, removing } from "./files.ts";

export const today = {
  "files/chcid": writeCommand({
    ...aboutChcid,
    arguments: path("change"),
    run(call) {
      const { path } = call.arguments;
      if (/^\/+$/.test(path)) {
        throw new NodeError(
          "cannot change CID format of the MFS root; use 'ipfs config Import.CidVersion' and 'ipfs config Import.HashFunction' instead",
        );
      }
      return call.node.files.chcid(path, changing(call));
    },
  }),
  "files/rm": writeCommand({
    group,
    help: "Removes files, and directories with `recursive`.",
    arguments: [{ ...removed, help: "What to remove." }],
    options: removing,
    returns: stream("string"),
    async *run(call) {
      const { recursive, force, flush } = call.options;
      if (!flush) {
        throw new NodeError(
          "files rm always flushes for safety. The --flush flag cannot be set to false for this command",
        );
      }
      let failed = false;
      for (const path of call.arguments.path) {
        try {
          await call.node.files.rm(path, { ...changing(call), recursive, force });
        } catch (error) {
          if (!NodeError.is(error)) throw error;
          failed = true;
          yield `${path}: ${call.wording(error)}`;
        }
      }
      if (failed) throw new NodeError("can't remove some files");
    },
    text: (message) => `${message}\n`,
  }),
} satisfies Commands;
