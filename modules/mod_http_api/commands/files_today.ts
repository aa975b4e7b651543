/** Removing from the mutable namespace (MFS), as Kubo 0.43 does it: every path is tried. */
import { NodeError } from "modhost/node";
import { type Commands, stream, writeCommand } from "../rpc/command.ts";
import { changing, group, removed, removing } from "./files.ts";

export const today = {
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
