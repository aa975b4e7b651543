/** Calls a command of a server's node from the command line. */
import { type CommandContext, nearest, UsageError } from "../../../../core/cli/index.ts";
import { editConfig } from "./edit.ts";
import { rpcCommandHelp, rpcGroupHelp } from "./help.ts";
import { findCommand, moveCommandFirst, parseCall, takeOwnOptions } from "./parse.ts";
import { add, convertCids, isMultibase, type Presenter, print, removeBlocks, withTopic } from "./presenters.ts";
import { exportKey, get } from "./save_files.ts";
import { findServer, type Server } from "./server.ts";
import { Session } from "./session.ts";
import { addPins, collectGarbage, colouredJson, countLines } from "./show_progress.ts";
import { type RpcCommand, readSurface } from "./surface.ts";
import { tables, tabular } from "./tables.ts";

export interface RpcOptions {
  /** Default: the server that `--api` or the repo names. */
  readonly server?: Server;
  /** The words in front of command names in usage texts. Default: "modhost rpc". */
  readonly program?: string;
}

/**
 * Calls the command that the words name on a server's node. Resolves to the exit code.
 *
 * @throws UsageError for words that match no command, Error with the reason of a failure /
 */
export async function callRpc(
  context: CommandContext,
  words: readonly string[],
  { server, program = "modhost rpc" }: RpcOptions = {},
): Promise<number> {
  const { help: isFlag, rest: given, ...named } = takeOwnOptions(words);
  const ordered = moveCommandFirst(given);
  const isWord = ordered[0] === "help";
  const rest = isWord ? ordered.slice(1) : ordered;
  const found = server ?? (await findServer(context, named));
  const commands = await readSurface(found);
  const session = new Session(found, context);
  const { command, rest: behind } = findCommand(commands, rest);
  if (isFlag || isWord || command === undefined) {
    const who = found.connect === undefined ? "The server has" : "There is";
    await session.write(helpText(commands, rest, program, who));
    return 0;
  }
  const present = presenters(commands)[command.path] ?? print;
  return await whole(context, () => present(session, parseCall(command, behind)));
}

/**
 * Returns the help on what the words name: a command, a group of commands or, without words, all
 * commands. `program` is what stands in front of command names; `who` begins the sentence about an
 * unknown command.
 *
 * @throws UsageError if the words name nothing /
 */
export function helpText(
  commands: ReadonlyMap<string, RpcCommand>,
  words: readonly string[],
  program: string,
  who = "There is",
): string {
  const { command, group } = findCommand(commands, words);
  if (command !== undefined) return `${rpcCommandHelp(command, commands, program)}\n`;
  if (words.length > 0 && (group === "" || group !== words.join("/"))) throw unknown(commands, words, group, who);
  return `${rpcGroupHelp(commands, group, program)}\n`;
}

/** Commands whose output go-ipfs partly leaves to the client. */
const presenters = (commands: ReadonlyMap<string, RpcCommand>): Readonly<Record<string, Presenter>> => ({
  ...Object.fromEntries(Object.entries(tables).map(([path, table]) => [path, tabular(table)])),
  add,
  get,
  refs: countLines,
  "refs/local": countLines,
  "pin/add": addPins,
  "repo/gc": collectGarbage(commands),
  "config/show": colouredJson,
  "block/rm": removeBlocks,
  "cid/base32": convertCids,
  "cid/format": convertCids,
  "key/export": exportKey,
  "config/edit": editConfig(commands),
  ...(isMultibase(commands) && { "pubsub/peers": withTopic, "pubsub/pub": withTopic, "pubsub/sub": withTopic }),
});

/**
 * `group` is the part of the words that names a group. At most one word after it can be the name of
 * a command.
 */
function unknown(
  commands: ReadonlyMap<string, RpcCommand>,
  words: readonly string[],
  group: string,
  who: string,
): UsageError {
  const groups = group === "" ? [] : group.split("/");
  const name = words[groups.length];
  if (name === undefined || name.startsWith("-")) {
    return new UsageError(`No command is given${groups.length === 0 ? "" : ` after ${groups.join(" ")}`}`);
  }
  const path = [...groups, name].join("/");
  const near = nearest(path, [...commands.keys()]);
  const hint = near === undefined ? "" : `: did you mean ${near.replaceAll("/", " ")}?`;
  return new UsageError(`${who} no command ${path.replaceAll("/", " ")}${hint}`);
}

/** A reader that has seen enough (`| head`) closes the pipe, which is not an error. */
async function whole({ stdout }: CommandContext, run: () => Promise<void>): Promise<number> {
  stdout.on("error", () => undefined);
  try {
    await run();
    return 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") return 1;
    throw error;
  }
}
