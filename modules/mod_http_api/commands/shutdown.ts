/** `shutdown`: stops the node and its host. */
import { type Commands, nothing, writeCommand } from "../rpc/command.ts";

export const commands = {
  shutdown: writeCommand({
    help: "Stops the node and the host that it runs in.",
    returns: nothing,
    run({ operator }) {
      operator.stop();
    },
  }),
} satisfies Commands;
