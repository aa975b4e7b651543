/** `cat`: the contents of files. */
import { bytes, type Commands, raw, readCommand } from "../rpc/command.ts";

export const commands = {
  cat: readCommand({
    help: "Returns the contents of files.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "The files." }],
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Number of bytes to skip." },
      length: { type: "int64", aliases: ["l"], help: "Maximum number of bytes to return." },
      progress: { type: "bool", aliases: ["p"], since: "0.43", help: "Show progress; has no effect on the response." },
    },
    returns: raw,
    async run({ node, arguments: { "ipfs-path": paths }, options: { offset, length }, signal, offline }) {
      const content = node.cat(paths, { offset, length, signal, offline });
      await content.opened;
      return bytes(content, { length: await content.length, release: (piece) => content.release(piece) });
    },
  }),
} satisfies Commands;
