/** `docs/reference/command-line.md`: the table of commands. */
import type { Command, CommandOption } from "#core/cli/command.ts";
import { everyCommand, globals } from "#core/cli/program.ts";
import { code, page, table } from "./markdown.ts";

export async function commandLinePage(): Promise<string> {
  const commands = await everyCommand();
  return page("Command line", "core/cli/commands.ts and the folders cli/ of bundled modules", [
    introduction,
    table(
      ["Command", ""],
      commands.map((command) => [`[${code(usage(command))}](#modhost-${command.name})`, command.help]),
    ),
    ...commands.flatMap((command) => [
      section(command),
      ...(command.commands ?? []).map((below) => section(below, `${command.name} `)),
    ]),
    `## Options of every command\n\nOf \`rpc\` and \`node\`, these stand before the name; \`rpc\` takes \`--config\` behind it, too.\n\n${options(globals)}`,
    exitCodes,
    bringing,
  ]);
}

const usage = (command: Command, before = "") =>
  [`modhost ${before}${command.name}`, command.arguments].filter((part) => part !== undefined).join(" ");

function section(command: Command, before = ""): string {
  const own = command.options === undefined ? "" : `\n\n${options(command.options)}`;
  const title = `${"#".repeat(before === "" ? 2 : 3)} modhost ${before}${command.name}`;
  const about = command.about === undefined ? "" : `\n\n${command.about}`;
  return `${title}\n\n\`\`\`\n${usage(command, before)} [OPTIONS]\n\`\`\`\n\n${command.help}.${own}${about}`;
}

function options(all: Readonly<Record<string, CommandOption>>): string {
  const rows = Object.entries(all).map(([name, { short, value, help }]) => {
    const long = `--${name}${value === undefined ? "" : ` ${value}`}`;
    return [short === undefined ? code(long) : `${code(`-${short}`)}, ${code(long)}`, help];
  });
  return table(["Option", ""], rows);
}

const introduction = `Without a command, \`run\` is meant; without arguments, it serves what the configuration says. Options may stand anywhere,
but for \`rpc\` and \`node\`: what stands behind these is their own, and options of modhost itself stand before them.
Options of the configuration are no options here: they stand in the config file, or as \`MODHOST_HTTP_PORTS=6280\` in the
environment. In a clone \`npx modhost\` is the program and \`npm start\` its command \`run\`.`;

const exitCodes = `## Exit codes

${table(
  ["Code", ""],
  [
    ["0", "Done; of `run`: stopped by SIGTERM or SIGINT, in order."],
    ["1", "Failed: the reason is on the standard error. `check`: the configuration is not valid."],
    ["2", "Called wrongly: the standard error has a sentence and the way to `--help`."],
    ["130, 143", "`run` was ended at once by a second SIGINT or SIGTERM."],
  ],
)}

Below \`node\` they are those of go-ipfs: 0, 1 for every failure, and 255 when a second signal ended the daemon at once.

On a terminal commands print text, elsewhere a JSON value a line; \`--json\` and \`--no-json\` decide.`;

const bringing = `## Commands of modules

A module that is a folder or a package can bring commands, whether it comes with modhost or not: next to its file,
\`cli/NAME.ts\` (or \`.js\`) exports the command NAME as \`command\`, and \`cli/doctor.ts\` exports \`checks\` for
\`modhost doctor\`. What they need is in \`modhost/cli\`. [Extend modhost](../guides/extend/README.md) shows a module that does it.

modhost finds the commands of the modules that its configuration names, and of those in the folders of \`plugin_paths\`. Commands
of modhost itself come first, then those of bundled modules, then files and folders to serve, then commands of other modules. A
command file that fails, or whose name is taken, costs one line on the standard error of \`modhost --help\`, and \`modhost doctor\`
lists it. A file is imported when its command is called or when all commands are listed, so that other commands start as fast as
without it.`;
