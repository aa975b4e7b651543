import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { coreOptions, variableOf } from "../config/index.ts";
import { reasonOf } from "../util/errors.ts";
import { packageVersion } from "../util/package.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { completionSites } from "./completion/sites.ts";
import { completionOf } from "./completion.ts";
import { doctorOf } from "./doctor.ts";
import { commandHelp, programHelp } from "./help.ts";
import { type ConfigSearch, ModuleCommands } from "./module_commands.ts";
import { Output } from "./output.ts";
import { firstWord, readWords, suggestion, takeOptions } from "./words.ts";

/** Options of every command. */
export const globals = {
  config: { type: "string", short: "c", value: "FILE", help: "Read this config file instead of looking for one" },
  json: { type: "boolean", help: "Print JSON, which is the default without a terminal; --no-json prints text" },
  color: {
    type: "boolean",
    help: "Use colours; --no-color uses none. Default: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise",
  },
  help: { type: "boolean", short: "h", help: "Print this help" },
  version: { type: "boolean", short: "V", help: "Print the version" },
} as const satisfies Record<string, CommandOption>;

/** The command `help`: `help add` is `add --help`. */
const help: Command = {
  name: "help",
  arguments: "[COMMAND]",
  help: "Show help for the program or for a command",
  verbatim: true,
  run: ({ args, ...context }) => program([...args, "--help"], context),
};

const completion = completionOf(async (context) => completionSites(await everyCommand(context), globals));

const doctor = doctorOf((search) => moduleCommands(search));

const ownCommands: readonly Command[] = [...commands, doctor, completion, help];

const moduleCommands = (search?: ConfigSearch) =>
  new ModuleCommands(
    ownCommands.map(({ name }) => name),
    search,
  );

/**
 * Returns the program's own commands and those of modules: of all modules of the configuration that
 * is found, or only of the bundled ones. Prints to `stderr` which files of modules cannot be used.
 */
export async function everyCommand(found?: ConfigSearch & Pick<CommandContext, "stderr">): Promise<Command[]> {
  const modules = moduleCommands(found);
  const all = [...ownCommands, ...(await modules.all())];
  if (found !== undefined) warn(found.stderr, modules);
  return all;
}

/** Returns the text of --help for the program, without running code of configured modules. */
async function helpOf(search: ConfigSearch & Pick<CommandContext, "stderr">): Promise<string> {
  const modules = moduleCommands(search);
  const text = programHelp([...ownCommands, ...(await modules.listed())], globals);
  warn(search.stderr, modules);
  return text;
}

function warn(stderr: NodeJS.WriteStream, { faults }: ModuleCommands): void {
  for (const { text, remedy } of faults) stderr.write(`modhost: ${text}: ${remedy}\n`);
}

export interface ProgramContext {
  readonly stdin: CommandContext["stdin"];
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Runs the command that the arguments name and returns the exit code: 0 done, 1 failed (the reason
 * is on the standard error), 2 wrong usage.
 */
export async function program(argv: readonly string[], context: ProgramContext): Promise<number> {
  const { stdin, stdout, stderr, cwd, env } = context;
  try {
    const { command, named, args, values } = await parse(argv, context);
    const { config, json, color, help: isHelpRequested, version, ...options } = values;
    // The log and the modules read these variables, too.
    if (color === true) env.FORCE_COLOR = "1";
    if (color === false) Object.assign(env, { NO_COLOR: "1", FORCE_COLOR: "0" });
    const configPath = typeof config === "string" ? resolve(cwd, config) : undefined;
    const output = new Output(stdout, typeof json === "boolean" ? json : undefined, env);
    if (version === true) {
      stdout.write(`${packageVersion()}\n`);
      return 0;
    }
    if (isHelpRequested === true) {
      const text = () => command.helpText?.() ?? commandHelp(command, globals);
      stdout.write(`${named ? await text() : await helpOf({ configPath, cwd, env, stderr })}\n`);
      return 0;
    }
    return await command.run({ args, options, configPath, output, cwd, env, stdin, stdout, stderr });
  } catch (error) {
    stderr.write(`modhost: ${reasonOf(error)}\n`);
    if (!UsageError.is(error)) return 1;
    stderr.write("Try modhost --help.\n");
    return 2;
  }
}

interface Parsed {
  readonly command: Command;
  /** False if no command was named and the default one is used. */
  readonly named: boolean;
  readonly args: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/**
 * Finds the command. Options may come before it: the first word that is not part of an option names
 * it.
 */
async function parse(argv: readonly string[], { cwd, env, stderr }: ProgramContext): Promise<Parsed> {
  const every = Object.assign({}, ...commands.map((command) => command.options), globals);
  const at = firstWord(argv, every);
  const first = at === undefined ? undefined : argv[at];
  const { config } = takeOptions(argv, { config: globals.config }).values;
  const modules = moduleCommands({
    configPath: typeof config === "string" ? resolve(cwd, config) : undefined,
    cwd,
    env,
  });
  const found = first === undefined ? undefined : await commandNamed(first, cwd, modules);
  if (first === undefined || at === undefined || found === undefined) {
    if (first !== undefined && !existsSync(resolve(cwd, first))) {
      // The word may have been meant as the value of an unknown option; this then reports the
      // option.
      readWords({ ...commands[0], options: every }, argv.slice(0, at), globals, settingHint);
      const names = [...ownCommands.map(({ name }) => name), ...(await modules.names())];
      warn(stderr, modules);
      throw new UsageError(`There is no command or file ${first}${suggestion(first, names)}`);
    }
    return { command: commands[0], named: false, ...readWords(commands[0], argv, globals, settingHint) };
  }
  const before = argv.slice(0, at);
  const behind = argv.slice(at + 1);
  if (found.verbatim !== true)
    return { command: found, named: true, ...readWords(found, [...before, ...behind], globals, settingHint) };
  // Options of the program come before the name; everything after it belongs to the command.
  const { values } = readWords({ name: found.name }, before, globals);
  const helpOption = behind.length === 1 && /^(--help|-h)$/.test(behind[0] ?? "") ? { help: true } : {};
  return { command: found, named: true, args: behind, values: { ...values, ...helpOption } };
}

/** Returns a hint for options of the configuration, which do not exist on the command line. */
function settingHint(unknown: string): string {
  const name = unknown.replaceAll("-", "_");
  if (/^(https?_)?ports?$/.test(name)) {
    return `: --port sets the port of plain HTTP, and the options http_ports and https_ports set all ports, for example ${variableOf("http_ports")}=6280`;
  }
  return Object.hasOwn(coreOptions, name) ? `: set it in the config file, or as ${variableOf(name)}` : "";
}

/**
 * Returns the command of this name. A file or folder of the name takes precedence over the command
 * of a module that is not bundled, because files have always been served by their name.
 */
async function commandNamed(name: string, cwd: string, modules: ModuleCommands): Promise<Command | undefined> {
  const own = ownCommands.find((command) => command.name === name) ?? (await modules.bundled(name));
  return own === undefined && !existsSync(resolve(cwd, name)) ? modules.configured(name) : own;
}
