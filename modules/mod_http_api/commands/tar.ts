/** `tar`: tar archives stored as trees. */
import { bytes, type Commands, defineGroup, raw, readCommand, value, writeCommand } from "../rpc/command.ts";
import { addedItem } from "./shapes.ts";

export const commands = {
  tar: defineGroup({ help: "Store tar archives." }),
  "tar/add": writeCommand({
    help: "Adds a tar archive, entry by entry.",
    file: { name: "file", required: true, help: "The archive." },
    returns: value(addedItem),
    async run({ node, files, signal, cidText }) {
      const write = cidText();
      const { name, body } = await files.one();
      const { cid, size } = await node.tar.add(body, { signal });
      return { Name: name, Hash: write(cid), Size: String(size) };
    },
    text: ({ Hash }) => `${Hash}\n`,
  }),
  "tar/cat": readCommand({
    help: "Returns an archive that was added by `tar/add`.",
    arguments: [{ name: "path", path: true, required: true, stdin: "first", help: "The archive." }],
    returns: raw,
    async run({ node, arguments: { path }, signal, offline }) {
      const archive = node.tar.cat(path, { signal, offline });
      await archive.opened;
      return bytes(archive);
    },
  }),
} satisfies Commands;
