import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { coreOptions, variableOf } from "../config/index.ts";
import { reasonOf } from "../util/errors.ts";
import { packageVersion } from "../util/package.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { placesOf } from "./completion/places.ts";
import { completionOf } from "./completion.ts";
import { doctorOf } from "./doctor.ts";
import { commandHelp, programHelp } from "./help.ts";
import { moduleCommand, moduleCommandNames, moduleCommands } from "./module_commands.ts";
import { Output } from "./output.ts";
import { firstWord, readWords, suggestion } from "./words.ts";

/** Options of every command. */
export const globals = {
  config: { type: "string", short: "c", value: "FILE", help: "Read this config file instead of looking for one" },
  json: { type: "boolean", help: "Print JSON, which is the default without a terminal; --no-json prints text" },
  color: {
    type: "boolean",
    help: "Use colours; --no-color uses none. Default: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise",
  },
  help: { type: "boolean", short: "h", help: "Print this" },
  version: { type: "boolean", short: "V", help: "Print the version" },
} as const satisfies Record<string, CommandOption>;

/** `help add` is `add --help`. */
const help: Command = {
  name: "help",
  arguments: "[COMMAND]",
  help: "Show help for the program or for a command",
  verbatim: true,
  run: ({ args, ...context }) => program([...args, "--help"], context),
};

const completion = completionOf(async () => placesOf(await everyCommand(), globals));

const doctor = doctorOf(async () => {
  const moduleChecks = await Promise.all((await moduleCommands()).map((command) => command.checks?.() ?? []));
  return moduleChecks.flat();
});

const ownCommands: readonly Command[] = [...commands, doctor, completion, help];

/** Those of bundled modules, too. */
export async function everyCommand(): Promise<Command[]> {
  return [...ownCommands, ...(await moduleCommands())];
}

export interface ProgramContext {
  readonly stdin: CommandContext["stdin"];
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Runs the command that the arguments name and gives the exit code: 0 done, 1 failed (the reason on the standard
 * error), 2 called wrongly.
 */
export async function program(argv: readonly string[], context: ProgramContext): Promise<number> {
  const { stdin, stdout, stderr, cwd, env } = context;
  try {
    const { command, named, args, values } = await parse(argv, cwd);
    const { config, json, color, help: isAsked, version, ...options } = values;
    // The log and the modules go by these variables, too.
    if (color === true) env.FORCE_COLOR = "1";
    if (color === false) Object.assign(env, { NO_COLOR: "1", FORCE_COLOR: "0" });
    const output = new Output(stdout, typeof json === "boolean" ? json : undefined, env);
    if (version === true) {
      stdout.write(`${packageVersion()}\n`);
      return 0;
    }
    if (isAsked === true) {
      const text = () => command.helpText?.() ?? commandHelp(command, globals);
      stdout.write(`${named ? await text() : programHelp(await everyCommand(), globals)}\n`);
      return 0;
    }
    const configPath = typeof config === "string" ? resolve(cwd, config) : undefined;
    return await command.run({ args, options, configPath, output, cwd, env, stdin, stdout, stderr });
  } catch (error) {
    stderr.write(`modhost: ${reasonOf(error)}\n`);
    if (!(error instanceof UsageError)) return 1;
    stderr.write("Try modhost --help.\n");
    return 2;
  }
}

interface Parsed {
  readonly command: Command;
  /** False when no command was named and the default one was taken. */
  readonly named: boolean;
  readonly args: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/** Options may stand before the command: the first word that belongs to none names it. */
async function parse(argv: readonly string[], cwd: string): Promise<Parsed> {
  const every = Object.assign({}, ...commands.map((command) => command.options), globals);
  const at = firstWord(argv, every);
  const first = at === undefined ? undefined : argv[at];
  const found = first === undefined ? undefined : await commandNamed(first);
  if (first === undefined || at === undefined || found === undefined) {
    if (first !== undefined && !existsSync(resolve(cwd, first))) {
      // It may well be meant as the value of an option that there is not.
      readWords({ ...commands[0], options: every }, argv.slice(0, at), globals, settingHint);
      const names = [...ownCommands.map(({ name }) => name), ...moduleCommandNames()];
      throw new UsageError(`There is no command or file ${first}${suggestion(first, names)}`);
    }
    return { command: commands[0], named: false, ...readWords(commands[0], argv, globals, settingHint) };
  }
  const [before, behind] = [argv.slice(0, at), argv.slice(at + 1)];
  if (found.verbatim !== true)
    return { command: found, named: true, ...readWords(found, [...before, ...behind], globals, settingHint) };
  // Options of the program stand before the name; what stands behind it is the command's own.
  const { values } = readWords({ name: found.name }, before, globals);
  const asked = behind.length === 1 && /^(--help|-h)$/.test(behind[0] ?? "") ? { help: true } : {};
  return { command: found, named: true, args: behind, values: { ...values, ...asked } };
}

/** For names of options of the configuration, which are no options of the command line. */
function settingHint(unknown: string): string {
  const name = unknown.replaceAll("-", "_");
  if (/^(https?_)?ports?$/.test(name)) {
    return `: --port is that of plain HTTP; else ports are the options http_ports and https_ports, for example ${variableOf("http_ports")}=6280`;
  }
  return Object.hasOwn(coreOptions, name) ? `: it is an option of the configuration, or ${variableOf(name)}` : "";
}

async function commandNamed(name: string): Promise<Command | undefined> {
  return ownCommands.find((command) => command.name === name) ?? (await moduleCommand(name));
}
