import type { Command, CommandOption } from "./command.ts";
import type { CommandSummary } from "./module_commands.ts";
import { columns } from "./output.ts";

/** Returns the text of --help for the program. */
export function programHelp(
  commands: readonly CommandSummary[],
  globals: Readonly<Record<string, CommandOption>>,
): string {
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
    "modhost COMMAND --help explains a command.",
  ].join("\n");
}

/** A heading of --help and the rows below it. */
export interface HelpSection {
  readonly title: string;
  readonly rows: readonly (readonly string[])[];
}

/**
 * Returns the text of --help for one command; `program` is the text before its name. `sections`
 * replace the list of the commands below it.
 */
export function commandHelp(
  command: Command,
  globals: Readonly<Record<string, CommandOption>>,
  program = "modhost",
  sections: readonly HelpSection[] = sectionsOf(command),
): string {
  const { name, help, about, verbatim, options } = command;
  const shown = verbatim === true ? { ...options } : { ...options, ...globals };
  const note = verbatim === true ? ["", `Options of modhost itself come before ${name}.`] : [];
  return [
    `Usage: ${program} ${usageOf(command)} [OPTIONS]`,
    "",
    help,
    ...sectionLines(sections),
    "",
    "Options:",
    optionRows(shown),
    ...(about === undefined ? [] : ["", about]),
    ...note,
  ].join("\n");
}

const sectionsOf = ({ commands = [] }: Command): HelpSection[] =>
  commands.length === 0
    ? []
    : [{ title: "Commands", rows: commands.map((command) => [usageOf(command), command.help]) }];

/** Formats sections that share the width of the first column. */
function sectionLines(sections: readonly HelpSection[]): string[] {
  const lines = columns(
    sections.flatMap(({ rows }) => rows),
    "  ",
  ).split("\n");
  return sections.flatMap(({ title, rows }) => ["", `${title}:`, ...lines.splice(0, rows.length)]);
}

function commandRows(commands: readonly CommandSummary[]): string {
  const rows = commands.map((command) => [usageOf(command), command.help]);
  return columns(rows, "  ");
}

function usageOf(command: Pick<Command, "name" | "arguments">): string {
  return [command.name, command.arguments].filter((part) => part !== undefined).join(" ");
}

function optionRows(options: Readonly<Record<string, CommandOption>>): string {
  const rows = Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? "    " : `-${option.short}, `;
    return [`${short}--${name}${option.value === undefined ? "" : ` ${option.value}`}`, option.help];
  });
  return columns(rows, "  ");
}
