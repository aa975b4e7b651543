import { type Command, UsageError } from "../../../core/cli/index.ts";
import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

const one = commandOf(operationOf("reload"), { positional: ["name"], completes: "modules" });
const config = commandOf(operationOf("apply"));

export const command: Command = {
  ...one,
  help: "Reload a module, or without a name: read the configuration again and apply the differences",
  arguments: "[NAME]",
  about: [
    "The exit code is 0 if the new instance serves, or the new configuration is in force, 1 if the reload was refused or has",
    "failed, and 3 if no server runs. A failure names the file, the line and its text, or the step that failed, and the",
    "previous state stays in force. modhost check shows in advance what a changed configuration would change.",
  ].join("\n"),
  run(context) {
    if (context.args.length > 0) return one.run(context);
    if (context.options.host !== undefined) throw new UsageError("--host needs the name of a module");
    return config.run(context);
  },
};
