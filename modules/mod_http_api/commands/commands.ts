/** `commands`: lists all commands. */
import { type Commands, readCommand, value } from "../rpc/command.ts";
import { commandLines, commandTree, type ListedCommand } from "../rpc/listing.ts";
import { fields } from "../rpc/shape.ts";

export const commands = {
  commands: readCommand({
    help: "Lists all commands.",
    readOnly: true,
    options: { flags: { type: "bool", aliases: ["f"], help: "Also list the options of each command." } },
    returns: value(
      fields("Command", { Name: "string", Subcommands: ["any"], Options: [fields({ Names: ["string"] })] }),
    ),
    run: ({ table, options }) => commandTree(table, options.flags === true),
    text: (root) => `${commandLines(root as ListedCommand).join("\n")}\n`,
  }),
} satisfies Commands;
