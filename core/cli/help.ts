import type { Command, CommandOption } from "./command.ts";
import { columns } from "./output.ts";

/** --help of the program. */
export function programHelp(commands: readonly Command[], globals: Readonly<Record<string, CommandOption>>): string {
  const rows = commands.map((command) => [usageOf(command), command.help]);
  return [
    "modhost serves modules over HTTP and HTTPS.",
    "",
    "Usage: modhost [COMMAND] [ARGUMENTS] [OPTIONS]",
    "",
    "Commands (run is the default):",
    columns(rows, "  "),
    "",
    "Options:",
    optionRows(globals),
    "",
    "modhost COMMAND --help tells more about a command.",
  ].join("\n");
}

/** --help of one command. */
export function commandHelp(command: Command, globals: Readonly<Record<string, CommandOption>>): string {
  const options = command.verbatim === true ? { ...command.options } : { ...command.options, ...globals };
  const note =
    command.verbatim === true ? ["", `Options of modhost itself, such as --config, stand before ${command.name}.`] : [];
  return [
    `Usage: modhost ${usageOf(command)} [OPTIONS]`,
    "",
    command.help,
    "",
    "Options:",
    optionRows(options),
    ...note,
  ].join("\n");
}

function usageOf(command: Command): string {
  return [command.name, command.arguments].filter((part) => part !== undefined).join(" ");
}

function optionRows(options: Readonly<Record<string, CommandOption>>): string {
  const rows = Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? "    " : `-${option.short}, `;
    return [`${short}--${name}${option.value === undefined ? "" : ` ${option.value}`}`, option.help];
  });
  return columns(rows, "  ");
}
