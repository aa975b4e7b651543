/** `docs/reference/command-line.md`: the table of commands. */
import type { Command, CommandOption } from "../../core/cli/command.ts";
import { commands } from "../../core/cli/commands.ts";
import { globals } from "../../core/cli/program.ts";
import { code, page, table } from "./markdown.ts";

export function commandLinePage(): string {
  return page("Command line", "core/cli/commands.ts", [
    introduction,
    table(
      ["Command", ""],
      commands.map((command) => [`[${code(usage(command))}](#modhost-${command.name})`, command.help]),
    ),
    ...commands.map(section),
    `## Options of every command\n\n${options(globals)}`,
    exitCodes,
  ]);
}

const usage = (command: Command) =>
  ["modhost", command.name, command.arguments].filter((part) => part !== undefined).join(" ");

function section(command: Command): string {
  const own = command.options === undefined ? "" : `\n\n${options(command.options)}`;
  return `## modhost ${command.name}\n\n\`\`\`\n${usage(command)} [OPTIONS]\n\`\`\`\n\n${command.help}.${own}`;
}

function options(all: Readonly<Record<string, CommandOption>>): string {
  const rows = Object.entries(all).map(([name, { short, value, help }]) => {
    const long = `--${name}${value === undefined ? "" : ` ${value}`}`;
    return [short === undefined ? code(long) : `${code(`-${short}`)}, ${code(long)}`, help];
  });
  return table(["Option", ""], rows);
}

const introduction = `Without a command, \`run\` is meant; without arguments, it serves what the configuration says. Options may stand anywhere.
In a clone \`npx modhost\` is the program and \`npm start\` its command \`run\`.`;

const exitCodes = `## Exit codes

${table(
  ["Code", ""],
  [
    ["0", "Done; of `run`: stopped by SIGTERM or SIGINT, in order."],
    ["1", "Failed: the reason is on the standard error. `check`: the configuration does not hold."],
    ["2", "Called wrongly: the standard error has a sentence and the way to `--help`."],
    ["130, 143", "`run` was ended at once by a second SIGINT or SIGTERM."],
  ],
)}

On a terminal commands print text, elsewhere a JSON value a line; \`--json\` and \`--no-json\` decide.`;
