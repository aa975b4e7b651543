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
    `## Options of every command\n\nFor \`rpc\` and \`node\`, put these before the name. \`rpc\` also takes \`--config\` after it.\n\n${options(globals)}`,
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

const introduction = `Without a command, modhost executes \`run\`. Without arguments, it serves what the configuration says. Options may come
before or after the command. The exceptions are \`rpc\` and \`node\`: everything after them belongs to them, so options of
modhost itself come before. Options of the configuration are not options of the command line. Set them in the config file, or
in the environment, as in \`MODHOST_HTTP_PORTS=6280\`. In a clone, \`npx modhost\` is the program, and \`npm start\` executes its
command \`run\`.`;

const exitCodes = `## Exit codes

${table(
  ["Code", ""],
  [
    ["0", "Success. For `run`: SIGTERM or SIGINT stopped it gracefully."],
    ["1", "Failure: standard error has the reason. For `check`: the configuration is not valid."],
    ["2", "Wrong usage: standard error has the reason and refers to `--help`."],
    ["130, 143", "A second SIGINT or SIGTERM ended `run` at once."],
  ],
)}

Commands of \`node\` use those of go-ipfs: 0, 1 for every failure, and 255 if a second signal ended the daemon at once.

On a terminal, commands print text; elsewhere they print one JSON value per line. \`--json\` and \`--no-json\` override this.`;

const bringing = `## Commands of modules

A module that is a folder or a package can add commands, whether it comes with modhost or not. Next to the module's file,
\`cli/NAME.ts\` (or \`.js\`) exports the command NAME as \`command\`, and \`cli/doctor.ts\` exports \`checks\` for
\`modhost doctor\`. \`modhost/cli\` exports what they need. [Extend modhost](../guides/extend/README.md) shows such a module.

modhost finds the commands of the modules that its configuration names, and of the modules in the folders of \`plugin_paths\`.
If several have the same name, commands of modhost itself take precedence, then those of bundled modules, then files and
folders to serve, then commands of other modules. A command file that fails, or whose name is taken, prints one line on the
standard error of \`modhost --help\`, and \`modhost doctor\` lists it. A command file is imported only when its command is
executed or when all commands are listed, so that it does not slow down other commands.`;
