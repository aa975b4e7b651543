import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { nearest } from "../config/index.ts";
import { reasonOf } from "../errors.ts";
import { packageVersion } from "../package.ts";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { commandHelp, programHelp } from "./help.ts";
import { Output } from "./output.ts";

/** Options of every command. */
export const globals = {
  config: { type: "string", short: "c", value: "FILE", help: "Read this config file instead of looking for one" },
  json: { type: "boolean", help: "Print JSON, as is done without a terminal; --no-json prints text" },
  help: { type: "boolean", short: "h", help: "Print this" },
  version: { type: "boolean", short: "V", help: "Print the version" },
} as const satisfies Record<string, CommandOption>;

export interface ProgramSurroundings {
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
export async function program(argv: readonly string[], surroundings: ProgramSurroundings): Promise<number> {
  const { stdin, stdout, stderr, cwd, env } = surroundings;
  try {
    const { command, named, args, values } = parse(argv, cwd);
    const { config, json, help, version, ...options } = values;
    const output = new Output(stdout, typeof json === "boolean" ? json : undefined);
    if (version === true) {
      stdout.write(`${packageVersion()}\n`);
      return 0;
    }
    if (help === true) {
      stdout.write(`${named ? commandHelp(command, globals) : programHelp(commands, globals)}\n`);
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
  readonly args: string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/** Options may stand before the command; so it is found by reading them all first, then they are read strictly. */
function parse(argv: readonly string[], cwd: string): Parsed {
  const args = [...argv];
  const every = Object.assign({}, ...commands.map((command) => command.options), globals);
  const loose = parseArgs({
    args,
    options: every,
    strict: false,
    allowPositionals: true,
    allowNegative: true,
    tokens: true,
  });
  const [first] = loose.positionals;
  const found = commands.find((command) => command.name === first);
  const command = found ?? commands[0];
  if (found === undefined && first !== undefined && !existsSync(resolve(cwd, first))) {
    throw new UsageError(
      `There is no command or file ${first}${suggestion(
        first,
        commands.map(({ name }) => name),
      )}`,
    );
  }
  if (found?.verbatim === true) {
    // Options of the program stand before the name; what stands behind it is the command's own.
    const at = loose.tokens.find(({ kind }) => kind === "positional")?.index ?? 0;
    const { values } = strictly(() => parseArgs({ args: args.slice(0, at), options: globals, allowNegative: true }));
    const own = args.slice(at + 1);
    const asked = own.length === 1 && /^(--help|-h)$/.test(own[0] ?? "") ? { help: true } : {};
    return { command, named: true, args: own, values: { ...values, ...asked } as Parsed["values"] };
  }
  const known = { ...command.options, ...globals };
  const { values, positionals } = strictly(() =>
    parseArgs({ args, options: known, allowPositionals: true, allowNegative: true }),
  );
  const rest = found === undefined ? positionals : positionals.slice(1);
  if (command.arguments === undefined && rest.length > 0) {
    throw new UsageError(`${command.name} takes no argument, but there is ${rest.join(" ")}`);
  }
  return { command, named: found !== undefined, args: rest, values: values as Parsed["values"] };

  function strictly<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const [, unknown] = /^Unknown option '--([^']+)'/.exec(reasonOf(error)) ?? [];
      if (unknown === undefined) throw new UsageError(reasonOf(error).split("\n")[0]);
      throw new UsageError(
        `${command.name} has no option --${unknown}${suggestion(unknown, Object.keys(known), "--")}`,
      );
    }
  }
}

function suggestion(name: string, known: readonly string[], prefix = ""): string {
  const near = nearest(name, known);
  return near === undefined ? "" : `: did you mean ${prefix}${near}?`;
}
