/**
 * Changes of the mutable namespace (MFS) as Kubo 0.43 makes them: the root keeps its CID format,
 * and `files/rm` tries to remove every path.
 */
import { posix } from "node:path";
import { failure, NodeError } from "modhost/node";
import { type Commands, readCommand, stream, writeCommand } from "../rpc/command.ts";
import { aboutChcid, aboutRead, changeOptions, group, path, readAt, removedPaths, removeOptions } from "./files.ts";

/**
 * Kubo names the path in front of the text rather than within it, and omits the prefix of the
 * parent lookup.
 */
const removalText = (text: string): string =>
  text.replace(/^parent lookup: /, "").replace(/^\/.* is a directory, use -r/s, "path is a directory, use -r");

export const kubo043 = {
  "files/chcid": writeCommand({
    ...aboutChcid,
    arguments: path("change"),
    run(call) {
      const { path } = call.arguments;
      if (/^\/+$/.test(path)) {
        throw failure("FILES_CHANGE_REFUSED", {
          reason:
            "cannot change CID format of the MFS root; use 'ipfs config Import.CidVersion' and 'ipfs config Import.HashFunction' instead",
        });
      }
      return call.node.files.chcid(path, changeOptions(call));
    },
  }),
  "files/read": readCommand({
    ...aboutRead,
    async run(call) {
      try {
        return await readAt(call);
      } catch (error) {
        const isAbsent = NodeError.is(error) && (error.code === "FILE_NOT_FOUND" || error.code === "PATH_THROUGH_FILE");
        if (!isAbsent) throw error;
        const text = `${posix.normalize(call.arguments.path)}: ${error.message}`;
        throw new NodeError(error.code, text, { cause: error });
      }
    },
  }),
  "files/rm": writeCommand({
    group,
    help: "Removes files, and directories with `recursive`.",
    arguments: [{ ...removedPaths, help: "What to remove." }],
    options: removeOptions,
    returns: stream("string"),
    async *run(call) {
      const { recursive, force, flush } = call.options;
      if (!flush) {
        throw failure("OPTION_INVALID", {
          reason: "files rm always flushes for safety. The --flush flag cannot be set to false for this command",
        });
      }
      let failed = false;
      for (const path of call.arguments.path) {
        try {
          await call.node.files.rm(path, { ...changeOptions(call), recursive, force });
        } catch (error) {
          if (!NodeError.is(error)) throw error;
          failed = true;
          const text = removalText(call.wording(error));
          yield path.startsWith("/") ? `${posix.normalize(path)}: ${text}` : `${path} is not a valid path: ${text}`;
        }
      }
      if (failed) throw failure("ITEM_FAILED", { reason: "can't remove some files" });
    },
    text: (message) => `${message}\n`,
  }),
} satisfies Commands;
