import { nearest } from "../config/index.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { editConfig } from "./rpc/edit.ts";
import { commandHelp, groupHelp } from "./rpc/help.ts";
import { add, convertCids, type Presenter, print, removeBlocks } from "./rpc/outcome.ts";
import { findCommand, parseCall, takeOwn } from "./rpc/parse.ts";
import { exportKey, get } from "./rpc/saved.ts";
import { findServer, type Server } from "./rpc/server.ts";
import { Session } from "./rpc/session.ts";
import { type RpcCommand, readSurface } from "./rpc/surface.ts";

export const rpc: Command = {
  name: "rpc",
  arguments: "COMMAND [ARGUMENTS]",
  help: "Call a command of a running server's node, such as add or pin ls; without one, list them",
  verbatim: true,
  options: {
    api: {
      type: "string",
      value: "ADDRESS",
      help: "The server, a URL or a multiaddress; default: what the file `api` of the repo says",
    },
    token: { type: "string", value: "TOKEN", help: "A token of its option api_tokens; @FILE reads it from a file" },
    encoding: { type: "string", value: "FORM", help: "Form of the outcome: text, json (a value a line) or xml" },
  },
  run: (context) => callRpc(context, context.args),
};

/**
 * Calls a command of a server's node, as the words say it; without a server, that of `--api` or of the repo. Gives the
 * exit code.
 *
 * @throws UsageError for words that no command takes, Error with the reason of a failure
 */
export async function callRpc(context: CommandContext, words: readonly string[], server?: Server): Promise<number> {
  const { api, token, help, rest } = takeOwn(words);
  const found = server ?? (await findServer(context, api, token));
  const commands = await readSurface(found);
  const session = new Session(found, context);
  const { command, group, rest: behind } = findCommand(commands, rest);
  if (command === undefined) {
    if (rest.length > 0 && (group === "" || group !== rest.join("/"))) throw unknown(commands, rest);
    await session.write(`${groupHelp(commands, group)}\n`);
    return 0;
  }
  if (help) {
    await session.write(`${commandHelp(command, commands)}\n`);
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
});

function unknown(commands: ReadonlyMap<string, RpcCommand>, words: readonly string[]): UsageError {
  const options = words.findIndex((word) => word.startsWith("-"));
  const path = words.slice(0, options < 0 ? words.length : options).join("/");
  const near = nearest(path, [...commands.keys()]);
  const hint = near === undefined ? "" : `: did you mean ${near.replaceAll("/", " ")}?`;
  return new UsageError(`The server has no command ${path.replaceAll("/", " ")}${hint}`);
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
