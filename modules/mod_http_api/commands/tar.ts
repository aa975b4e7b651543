/** Archives as trees. */

import { readObject } from "../../mod_node/content/dag/object/node.ts";
import { addArchive } from "../../mod_node/content/tar_archive/add.ts";
import { catArchive, requireArchive } from "../../mod_node/content/tar_archive/cat.ts";
import { PreemptibleBatch } from "../../mod_node/storage/blockstore/preemptible_batch.ts";
import { bytes, type Commands, defineCommand, defineGroup, raw, value } from "../rpc/command.ts";
import { addedItem } from "./shapes.ts";

export const commands = {
  tar: defineGroup({ help: "Keep tar archives as trees." }),
  "tar/add": defineCommand({
    help: "Adds a tar archive, entry by entry.",
    file: { name: "file", required: true, help: "The archive." },
    returns: value(addedItem),
    async run(call) {
      const { lowLevel: node, signal } = call;
      const write = call.cidText();
      const { name, body } = await call.files.one();
      const batch = new PreemptibleBatch(node.blocks, node.lock, signal);
      const unguard = node.pins.guard(() => batch.unlinked());
      try {
        await batch.enter();
        const { cid, size } = await addArchive(body, batch, node.reader({ signal, offline: true }));
        await batch.flushThen(() => node.sync());
        return { Name: name, Hash: write(cid), Size: String(size) };
      } finally {
        batch.leave();
        unguard();
      }
    },
    text: ({ Hash }) => `${Hash}\n`,
  }),
  "tar/cat": defineCommand({
    help: "Gives an archive that was added so.",
    arguments: [{ name: "path", required: true, stdin: "first", help: "The archive." }],
    returns: raw,
    async run(call) {
      const read = call.lowLevel.reader(call);
      const { cid } = await call.lowLevel.resolve(call.arguments.path, call);
      const root = await readObject(cid, read);
      requireArchive(root);
      return bytes(catArchive(root, read, call.signal));
    },
  }),
} satisfies Commands;
