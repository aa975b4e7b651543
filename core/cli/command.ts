import type { ParseArgsOptionDescriptor } from "node:util";
import type { Check } from "./doctor/check.ts";
import type { Output } from "./output.ts";

export interface CommandOption extends ParseArgsOptionDescriptor {
  /** Placeholder of the value in --help. */
  readonly value?: string;
  /** One line for --help. */
  readonly help: string;
  /** Its value may come as two words, which are joined by a space, when the first one has this form: `GET /path`. */
  readonly firstOfTwo?: RegExp;
  /** What its value is a name of, for completion. */
  readonly completes?: KnownNames;
}

/** What a running server has names of. */
export type KnownNames = "modules" | "tokens" | "routes";

/** What is known of a command of a node, to complete it. */
export interface NodeCommand {
  /** `pin/ls`. */
  readonly path: string;
  readonly help: string;
  readonly options: readonly {
    readonly name: string;
    readonly aliases: readonly string[];
    readonly kind: "flag" | "value" | "list";
    readonly help: string;
    /** Of every command. */
    readonly shared: boolean;
  }[];
}

/** One command of the program: parsing, --help and dispatch come from it. */
export interface Command {
  readonly name: string;
  /** One line for --help. */
  readonly help: string;
  /** Sentences behind the options in --help, and in the reference. */
  readonly about?: string;
  /** Arguments as --help shows them; left out, the command takes none. */
  readonly arguments?: string;
  readonly options?: Readonly<Record<string, CommandOption>>;
  /** It reads all words behind its name itself, `--help` among them: `args` has them as they are, `options` has none. */
  readonly verbatim?: boolean;
  /** Commands below a verbatim one, for help and reference: it dispatches to them itself. */
  readonly commands?: readonly Command[];
  /** Words that its first argument can be, for completion. */
  readonly words?: readonly string[];
  /** What its arguments are names of, for completion; files otherwise. */
  readonly completes?: KnownNames;
  /** Checks of `modhost doctor` that come with the command: of what its module keeps. */
  checks?(): Promise<readonly Check[]>;
  /** Commands of a node that can stand behind its name, for completion. */
  surface?(): Promise<ReadonlyMap<string, NodeCommand>>;
  /** What --help prints, where that is more than follows from these fields. */
  helpText?(): Promise<string>;
  /** Gives the exit code. */
  run(context: CommandContext): Promise<number>;
}

export interface CommandContext {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  /** The file of --config. */
  readonly configPath: string | undefined;
  readonly output: Output;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The program was called wrongly: one sentence, exit code 2. */
export class UsageError extends Error {}
