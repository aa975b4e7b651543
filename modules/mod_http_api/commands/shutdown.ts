/** Shutting down the node. */
import { type Commands, defineCommand, nothing } from "../rpc/command.ts";

export const commands = {
  shutdown: defineCommand({
    effect: "write",
    help: "Stops the node and the host that it runs in.",
    returns: nothing,
    run({ operator }) {
      operator.stop();
    },
  }),
} satisfies Commands;
