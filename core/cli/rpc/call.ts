/** Calling a command of a server's node from the command line. */
import { nearest } from "../../config/index.ts";
import { type CommandContext, UsageError } from "../command.ts";
import { editConfig } from "./edit.ts";
import { commandHelp, groupHelp } from "./help.ts";
import { add, convertCids, isMultibase, type Presenter, print, removeBlocks, withTopic } from "./outcome.ts";
import { commandFirst, findCommand, parseCall, takeOwn } from "./parse.ts";
import { exportKey, get } from "./saved.ts";
import { findServer, type Server } from "./server.ts";
import { Session } from "./session.ts";
import { type RpcCommand, readSurface } from "./surface.ts";

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
  const { help, rest: given, ...named } = takeOwn(words);
  const rest = commandFirst(given);
  const found = server ?? (await findServer(context, named));
  const commands = await readSurface(found);
  const session = new Session(found, context);
  const { command, group, rest: behind } = findCommand(commands, rest);
  if (command === undefined) {
    if (rest.length > 0 && (group === "" || group !== rest.join("/"))) throw unknown(commands, rest, group, found);
    await session.write(`${groupHelp(commands, group, program)}\n`);
    return 0;
  }
  if (help) {
    await session.write(`${commandHelp(command, commands, program)}\n`);
    return 0;
  }
  const present = presenters(commands)[command.path] ?? print;
  return await whole(context, () => present(session, parseCall(command, behind)));
}

/** Commands of which the reference leaves a part to the client. */
const presenters = (commands: ReadonlyMap<string, RpcCommand>): Readonly<Record<string, Presenter>> => ({
  add,
  get,
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
  { connect }: Server,
): UsageError {
  const groups = group === "" ? [] : group.split("/");
  const name = words[groups.length];
  if (name === undefined || name.startsWith("-")) {
    return new UsageError(`No command is named${groups.length === 0 ? "" : ` behind ${groups.join(" ")}`}`);
  }
  const path = [...groups, name].join("/");
  const near = nearest(path, [...commands.keys()]);
  const hint = near === undefined ? "" : `: did you mean ${near.replaceAll("/", " ")}?`;
  const who = connect === undefined ? "The server has" : "There is";
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
