/** Calling a command of a server's node from the command line. */
import { nearest } from "../../config/index.ts";
import { type CommandContext, UsageError } from "../command.ts";
import { editConfig } from "./edit.ts";
import { rpcCommandHelp, rpcGroupHelp } from "./help.ts";
import { add, convertCids, isMultibase, type Presenter, print, removeBlocks, withTopic } from "./outcome.ts";
import { commandFirst, findCommand, parseCall, takeOwn } from "./parse.ts";
import { exportKey, get } from "./saved.ts";
import { findServer, type Server } from "./server.ts";
import { Session } from "./session.ts";
import { type RpcCommand, readSurface } from "./surface.ts";
import { tables, tabular } from "./tables.ts";
import { addPins, collectGarbage, paintedJson, tallied } from "./watched.ts";

export interface RpcOptions {
  /** Default: that of `--api` or of the repo. */
  readonly server?: Server;
  /** What the names of commands are typed behind. Default "modhost rpc". */
  readonly program?: string;
}

/**
 * Calls a command of a server's node, as the words say it, and gives the exit code.
 *
 * @throws UsageError for words that no command takes, Error with the reason of a failure
 */
export async function callRpc(
  context: CommandContext,
  words: readonly string[],
  { server, program = "modhost rpc" }: RpcOptions = {},
): Promise<number> {
  const { help: isFlag, rest: given, ...named } = takeOwn(words);
  const ordered = commandFirst(given);
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
 * The help on what the words name: a command, a group of commands, or all of them where there are no words. `program` is
 * what their names are typed behind; `who` begins the sentence about a command that is not known.
 *
 * @throws UsageError when the words name nothing
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

/** Commands of which the reference leaves a part to the client. */
const presenters = (commands: ReadonlyMap<string, RpcCommand>): Readonly<Record<string, Presenter>> => ({
  ...Object.fromEntries(Object.entries(tables).map(([path, table]) => [path, tabular(table)])),
  add,
  get,
  refs: tallied,
  "refs/local": tallied,
  "pin/add": addPins,
  "repo/gc": collectGarbage(commands),
  "config/show": paintedJson,
  "block/rm": removeBlocks,
  "cid/base32": convertCids,
  "cid/format": convertCids,
  "key/export": exportKey,
  "config/edit": editConfig(commands),
  ...(isMultibase(commands) && { "pubsub/peers": withTopic, "pubsub/pub": withTopic, "pubsub/sub": withTopic }),
});

/** `group`: what of the words is one; no more than one word behind it can be the name of a command. */
function unknown(
  commands: ReadonlyMap<string, RpcCommand>,
  words: readonly string[],
  group: string,
  who: string,
): UsageError {
  const groups = group === "" ? [] : group.split("/");
  const name = words[groups.length];
  if (name === undefined || name.startsWith("-")) {
    return new UsageError(`No command is named${groups.length === 0 ? "" : ` behind ${groups.join(" ")}`}`);
  }
  const path = [...groups, name].join("/");
  const near = nearest(path, [...commands.keys()]);
  const hint = near === undefined ? "" : `: did you mean ${near.replaceAll("/", " ")}?`;
  return new UsageError(`${who} no command ${path.replaceAll("/", " ")}${hint}`);
}

/** A reader that has seen enough (`| head`) is no failure to tell of. */
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
