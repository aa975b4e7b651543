/** Files and trees as archives. */
import { bytes, type Commands, defineCommand, raw } from "../rpc/command.ts";

export const commands = {
  get: defineCommand({
    help: "Gives a file or a tree as an archive.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", required: true, stdin: "first", help: "The file or directory." }],
    options: {
      output: { type: "string", aliases: ["o"], help: "Where to write it; of no effect on the answer." },
      archive: { type: "bool", aliases: ["a"], help: "Pack it as a tar archive, compressed or not." },
      compress: { type: "bool", aliases: ["C"], help: "Compress with gzip; a single file is not packed then." },
      "compression-level": { type: "int", aliases: ["l"], help: "From 1, quick, to 9, small." },
    },
    returns: raw,
    async run({ node, arguments: { "ipfs-path": path }, options, signal, offline, announce }) {
      const { archive, compress, "compression-level": compressionLevel } = options;
      const packed = node.get(path, { archive, compress, compressionLevel, signal, offline });
      announce(await packed.length);
      await packed.opened;
      return bytes(packed);
    },
  }),
} satisfies Commands;
