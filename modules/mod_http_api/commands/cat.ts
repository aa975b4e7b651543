/** The contents of files. */
import { bytes, type Commands, defineCommand, raw } from "../rpc/command.ts";

export const commands = {
  cat: defineCommand({
    help: "Gives the contents of files.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, variadic: true, stdin: "lines", help: "The files." }],
    options: {
      offset: { type: "int64", aliases: ["o"], help: "Bytes to pass over." },
      length: { type: "int64", aliases: ["l"], help: "Bytes to give at most." },
    },
    returns: raw,
    async run({ node, arguments: { "ipfs-path": paths }, options: { offset, length }, signal, offline }) {
      const content = node.cat(paths, { offset, length, signal, offline });
      await content.opened;
      return bytes(content, { length: await content.length, release: (piece) => content.release(piece) });
    },
  }),
} satisfies Commands;
