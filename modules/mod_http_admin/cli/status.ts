import { adminSocket, type Command, type CommandContext, withServer } from "../../../core/cli/index.ts";
import type { ServerStatus } from "../../../core/types.ts";
import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";
import { statusLines } from "./status/text.ts";
import { watchStatus } from "./status/watch.ts";

const once = commandOf(operationOf("status"), { show });

export const command: Command = {
  ...once,
  options: {
    watch: { type: "boolean", short: "w", help: "Update it every second, until q or Ctrl+C" },
    ...once.options,
  },
  about: [
    "With --watch the command follows restarts of the server, and says so in a line. In a pipe, or with --json, each update",
    "is a line of JSON.",
  ].join("\n"),
  run(context) {
    if (context.options.watch !== true) return once.run(context);
    return withServer(context, async () => watchStatus(context, await adminSocket(context, context.options.socket)));
  },
};

function show({ output }: CommandContext, status: ServerStatus): number {
  output.show(status, () => statusLines(status, output).join("\n"));
  return 0;
}
