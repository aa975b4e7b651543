/** `modhost node`: stands in for the go-ipfs program. Same command line; serves a repo at the addresses in its config. */

import {
  type Command,
  type CommandContext,
  callOptions,
  commandHelp,
  firstWord,
  readWords,
} from "../../../core/cli/index.ts";
import { reasonOf } from "../../../core/index.ts";
import { call } from "./node/call.ts";
import { chroot } from "./node/chroot.ts";
import { daemon } from "./node/daemon.ts";
import { init } from "./node/init.ts";
import { migrate } from "./node/migrate.ts";
import { program, repoOptions, sharedOptions } from "./node/repo.ts";
import { storeCommands } from "./node/store.ts";

const own: readonly Command[] = [init, daemon, migrate, chroot, ...storeCommands];

export const command: Command = {
  name: "node",
  arguments: "COMMAND [ARGUMENTS]",
  help:
    "Create, serve and convert a repo. Any other command is sent to the daemon of the repo or, if none runs, executed in " +
    "this process",
  verbatim: true,
  commands: own,
  options: repoOptions,
  helpText: nodeHelp,
  checks: async () => (await import("./node/checks.ts")).repoChecks,
  surface: async () => (await import("./node/help.ts")).surface(),
  /** Errors have the message format and exit code of go-ipfs. */
  async run(context) {
    try {
      return await dispatch(context);
    } catch (error) {
      context.stderr.write(`Error: ${reasonOf(error)}\n`);
      return 1;
    }
  },
};

async function nodeHelp(): Promise<string> {
  // Loaded here alone: it takes the whole table of commands along.
  return (await import("./node/help.ts")).nodeHelp(command, own);
}

async function dispatch(context: CommandContext): Promise<number> {
  const { args: words, stdout } = context;
  const at = firstWord(words, { ...sharedOptions, ...callOptions });
  const found = at === undefined ? undefined : own.find(({ name }) => wordsOf(name).every(isAt(words, at)));
  if (at === undefined && !words.includes("--version")) {
    stdout.write(`${await nodeHelp()}\n`);
    return 0;
  }
  // `help add` is `add --help`.
  if (at !== undefined && words[at] === "help") {
    return dispatch({ ...context, args: [...words.toSpliced(at, 1), "--help"] });
  }
  if (found === undefined || at === undefined) return call(context, words);
  // The global options of go-ipfs are accepted, though they have no effect on these commands.
  const { args, values } = readWords(found, words.toSpliced(at, wordsOf(found.name).length), {
    ...callOptions,
    ...sharedOptions,
  });
  if (values.help === true) {
    stdout.write(`${commandHelp(found, sharedOptions, program)}\n`);
    return 0;
  }
  return found.run({ ...context, args, options: values });
}

const wordsOf = (name: string): readonly string[] => name.split(" ");
const isAt =
  (words: readonly string[], at: number) =>
  (word: string, index: number): boolean =>
    words[at + index] === word;
