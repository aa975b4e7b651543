import type { ParseArgsOptionDescriptor } from "node:util";
import type { Output } from "./output.ts";

/** An option of a command for `parseArgs` of Node.js, with its text for help and completion. */
export interface CommandOption extends ParseArgsOptionDescriptor {
  /** The placeholder of the value in `--help`. */
  readonly value?: string;
  /** One line for `--help`. */
  readonly help: string;
  /**
   * If the first word of its value matches, the value may be two words, which are joined by a
   * space: `GET /path`.
   */
  readonly firstOfTwo?: RegExp;
  /** The kind of name of its value, for completion. */
  readonly completes?: KnownNames;
}

/** The kinds of names that completion requests from a running server. */
export type KnownNames = "modules" | "tokens" | "scopes" | "routes";

/**
 * A command below another one, as completion needs it. Its name may consist of several words:
 * `users add`.
 */
export type Subcommand = Pick<Command, "name" | "help" | "options" | "completes">;

/**
 * A command of the program. These fields define how its words are read, completed and explained by
 * `--help`.
 */
export interface Command {
  readonly name: string;
  /** One line for `--help`. */
  readonly help: string;
  /** Sentences that `--help` shows after the options. */
  readonly about?: string;
  /** The arguments as `--help` shows them. A command without this field takes none. */
  readonly arguments?: string;
  readonly options?: Readonly<Record<string, CommandOption>>;
  /**
   * The command reads all words after its name itself, including `--help`: `args` has them
   * unchanged, and `options` is empty.
   */
  readonly verbatim?: boolean;
  /**
   * Commands below a verbatim one, for help, completion and the reference. The command calls them
   * itself.
   */
  readonly commands?: readonly Command[];
  /** Values of its first argument, for completion. */
  readonly words?: readonly string[];
  /**
   * The kind of name of its arguments, for completion: one kind for all arguments, or one for each,
   * of which the last is for all further arguments. Default, and for undefined: files.
   */
  readonly completes?: KnownNames | readonly (KnownNames | undefined)[];
  /**
   * Returns additional commands below this one, for completion only. It is called only when
   * completion needs them.
   */
  subcommands?(): Promise<readonly Subcommand[]>;
  /** Returns the text of `--help`, for commands that these fields do not describe completely. */
  helpText?(): Promise<string>;
  /**
   * Runs the command and returns the exit code. A thrown error is printed: a UsageError ends with
   * the code 2, other errors with 1.
   */
  run(context: CommandContext): Promise<number>;
}

/** The arguments, options and streams that a command is called with. */
export interface CommandContext {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  /** The file given with `--config`. */
  readonly configPath: string | undefined;
  readonly output: Output;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * The command was called with wrong arguments. The program prints the message, and ends with the
 * exit code 2.
 */
export class UsageError extends Error {
  override name = "UsageError";

  /**
   * Returns true also for an error of another copy of this package, which a module may have
   * installed.
   */
  static is(error: unknown): error is UsageError {
    return error instanceof Error && error.name === "UsageError";
  }
}
