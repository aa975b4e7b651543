import type { Command, CommandOption } from "./command.ts";
import { columns } from "./output.ts";

/** --help of the program. */
export function programHelp(commands: readonly Command[], globals: Readonly<Record<string, CommandOption>>): string {
  return [
    "modhost serves modules over HTTP and HTTPS.",
    "",
    "Usage: modhost [COMMAND] [ARGUMENTS] [OPTIONS]",
    "",
    "Commands (run is the default):",
    commandRows(commands),
    "",
    "Options:",
    optionRows(globals),
    "",
    "modhost COMMAND --help tells more about a command.",
  ].join("\n");
}

/** --help of one command; `program` is what its name is typed behind. */
export function commandHelp(
  command: Command,
  globals: Readonly<Record<string, CommandOption>>,
  program = "modhost",
): string {
  const { name, help, about, verbatim, commands = [], options } = command;
  const shown = verbatim === true ? { ...options } : { ...options, ...globals };
  const note = verbatim === true ? ["", `Options of modhost itself stand before ${name}.`] : [];
  return [
    `Usage: ${program} ${usageOf(command)} [OPTIONS]`,
    "",
    help,
    ...(commands.length === 0 ? [] : ["", "Commands:", commandRows(commands)]),
    "",
    "Options:",
    optionRows(shown),
    ...(about === undefined ? [] : ["", about]),
    ...note,
  ].join("\n");
}

function commandRows(commands: readonly Command[]): string {
  const rows = commands.map((command) => [usageOf(command), command.help]);
  return columns(rows, "  ");
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
