/** Tells how to get updates. */
import { bytes, type Commands, defineCommand, raw } from "../rpc/command.ts";

export const commands = {
  update: defineCommand({
    help: "Tells how updates are had, and which version this is.",
    arguments: [{ name: "args", variadic: true, help: "Of no effect here." }],
    returns: raw,
    run: async ({ node }) => bytes(Buffer.from(await node.update())),
  }),
} satisfies Commands;
