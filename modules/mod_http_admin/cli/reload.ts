import { type Command, UsageError } from "../../../core/cli/index.ts";
import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

const one = commandOf(operationOf("reload"), { positional: ["name"], completes: "modules" });
const config = commandOf(operationOf("apply"));

export const command: Command = {
  ...one,
  help: "Load a module anew, or without a name: read the configuration again, and put what differs in force",
  arguments: "[NAME]",
  about: [
    "The exit code is 0 when the new instance serves, or the new configuration is in force, 1 when the reload was refused",
    "or has failed, and 3 when no server runs. A failure names the file, the line and what is there, or the step that failed;",
    "what was there before goes on then. modhost check shows beforehand what another configuration changes.",
  ].join("\n"),
  run(context) {
    if (context.args.length > 0) return one.run(context);
    if (context.options.host !== undefined) throw new UsageError("--host goes with the name of a module");
    return config.run(context);
  },
};
