/** Tells how to get updates. */
import { bytes, type Commands, defineCommand, raw } from "../rpc/command.ts";

export const commands = {
  update: defineCommand({
    effect: "write",
    help: "Shows the version and how to update.",
    arguments: [{ name: "args", variadic: true, help: "Has no effect here." }],
    returns: raw,
    run: async ({ node }) => bytes(Buffer.from(await node.update())),
  }),
} satisfies Commands;
