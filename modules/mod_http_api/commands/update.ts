/** `update`: explains how to get updates. */
import { bytes, type Commands, raw, writeCommand } from "../rpc/command.ts";

export const commands = {
  update: writeCommand({
    help: "Shows the version and how to update.",
    arguments: [{ name: "args", variadic: true, help: "Has no effect here." }],
    returns: raw,
    run: async ({ node }) => bytes(Buffer.from(await node.update())),
  }),
} satisfies Commands;
