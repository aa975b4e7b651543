/** `get`: files and trees as archives. */
import { bytes, type Commands, raw, readCommand } from "../rpc/command.ts";

export const commands = {
  get: readCommand({
    help: "Returns a file or directory as a tar archive.",
    readOnly: true,
    arguments: [{ name: "ipfs-path", path: true, required: true, stdin: "first", help: "The file or directory." }],
    options: {
      output: { type: "string", aliases: ["o"], help: "Where to write it; has no effect on the response." },
      archive: { type: "bool", aliases: ["a"], help: "Return a tar archive." },
      compress: {
        type: "bool",
        aliases: ["C"],
        help: "Compress with gzip; a single file is then not put into an archive.",
      },
      "compression-level": { type: "int", aliases: ["l"], help: "From 1 (fastest) to 9 (smallest)." },
      progress: { type: "bool", aliases: ["p"], since: "0.43", help: "Show progress; has no effect on the response." },
    },
    returns: raw,
    async run({ node, arguments: { "ipfs-path": path }, options, signal, offline, announce, level }) {
      const { archive, compress, "compression-level": compressionLevel } = options;
      const packed = node.get(path, { archive, compress, compressionLevel, exactNow: level.exactNow, signal, offline });
      announce(await packed.length);
      await packed.opened;
      return bytes(packed, { release: (piece) => packed.release(piece) });
    },
  }),
} satisfies Commands;
