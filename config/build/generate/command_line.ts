/** Generates `docs/reference/command-line.md` from the table of commands. */
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
    `## Options of every command\n\nFor \`rpc\` and \`node\`, put these before the name of the command. \`rpc\` also accepts \`--config\` after its name.\n\n${options(globals)}`,
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

const introduction = `For operators and authors. \`modhost\` without a command is \`modhost run\`, and without arguments it serves what the configuration
says. In a clone the program is \`npx modhost\`, and \`npm start\` is its command \`run\`.

Options may stand anywhere, with one exception: after \`rpc\` and \`node\`, everything belongs to these commands, and options of
modhost itself stand before them.

Options of the configuration are not options of the command line. Set them in the config file, or in the environment, such as
\`MODHOST_HTTP_PORTS=6280\`.`;

const exitCodes = `## Exit codes

${table(
  ["Code", ""],
  [
    ["0", "Success. For `run`: SIGTERM or SIGINT stopped the server cleanly."],
    ["1", "Failure; the reason is on standard error. For `check`: the configuration is invalid."],
    ["2", "Wrong arguments; standard error says what is wrong."],
    ["130, 143", "A second SIGINT or SIGTERM ended `run` at once."],
  ],
)}

Commands of \`node\` have the codes of go-ipfs: 0, 1 for every failure, and 255 if a second signal ended the daemon at once.

On a terminal, commands print text. In a pipe or a file they print a JSON value per line. \`--json\` and \`--no-json\` override that.`;

const bringing = `## Commands of modules

A module that is a folder or a package can add commands: \`cli/NAME.ts\` (or \`.js\`) next to its file exports the command NAME
as \`command\`, and \`cli/doctor.ts\` exports \`checks\` for \`modhost doctor\`. [Extend modhost](../guides/extend/README.md) has an
example, and [\`modhost/cli\`](command-api.md) the types.

modhost finds the commands of the modules that its configuration names, and of those in the folders of \`plugin_paths\`. Commands
of modhost itself come first, then those of bundled modules, then files and folders to serve, then commands of other modules.

A command runs with your rights. \`modhost --help\` lists the commands of modules that are not bundled by their names alone, and
runs none of their code. The file of a command is imported when the command is called, for its own \`--help\`, for the script of
\`modhost completion\`, and for \`modhost doctor\`, which also reports a file that fails or whose name is in use. Commands and checks
of [sandboxed modules](../guides/sandbox.md) are never run.`;
