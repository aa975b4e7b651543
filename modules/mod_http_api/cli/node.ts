/**
 * `modhost node`: a replacement for the go-ipfs program. It has the same command line, and serves a
 * repo at the addresses in its config.
 */

import { fileURLToPath } from "node:url";
import {
  type Command,
  type CommandContext,
  commandHelp,
  explainMissing,
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
import { callOptions } from "./rpc/parse.ts";

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
  subcommands: async () => (await import("./node/help.ts")).subcommands(),
  /** Errors have the message format and exit code of go-ipfs. */
  async run(context) {
    try {
      return await dispatch(context);
    } catch (error) {
      const explained = explainMissing(error, "node", fileURLToPath(import.meta.url));
      context.stderr.write(`Error: ${reasonOf(explained)}\n`);
      return 1;
    }
  },
};

async function nodeHelp(): Promise<string> {
  // Imported only here, because it loads the whole table of commands.
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
  // `help add` means `add --help`.
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
