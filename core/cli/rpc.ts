import { resolve } from "node:path";
import { nearest } from "../config/index.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { editConfig } from "./rpc/edit.ts";
import { commandHelp, groupHelp } from "./rpc/help.ts";
import { add, convertCids, isMultibase, type Presenter, print, removeBlocks, withTopic } from "./rpc/outcome.ts";
import { callOptions, commandFirst, findCommand, parseCall, takeOwn } from "./rpc/parse.ts";
import { exportKey, get } from "./rpc/saved.ts";
import { findServer, type Server } from "./rpc/server.ts";
import { Session } from "./rpc/session.ts";
import { type RpcCommand, readSurface } from "./rpc/surface.ts";
import { takeOptions } from "./words.ts";

const { api, token, encoding, timeout } = callOptions;
const configOption = {
  config: { type: "string", short: "c", value: "FILE", help: "Read this config file, which tells the repo" },
} as const;

export const rpc: Command = {
  name: "rpc",
  arguments: "COMMAND [ARGUMENTS]",
  help: "Call a command of a running server's node, such as add or pin ls; without one, list them",
  about: [
    "It calls the server that --api names, else the one of a repo, whose file `api` has its address while it runs. The",
    "repo is that of the config file which --config names, else of $IPFS_PATH, else of the configuration as `run` finds it",
    "(api_repo, else repo in data_path). When no server runs there, the call fails; only where nothing names a repo and",
    "there is no ./data/repo, the server at 127.0.0.1:5280 is called, and the standard error says so.",
  ].join("\n"),
  verbatim: true,
  options: {
    api: {
      ...api,
      help: "The server: a URL, HOST:PORT or a multiaddress; default: that of the repo, which it tells in its file `api`",
    },
    token,
    encoding,
    timeout,
    ...configOption,
  },
  run(context) {
    const { values, rest } = takeOptions(context.args, configOption);
    const { config } = values;
    const configPath = typeof config === "string" ? resolve(context.cwd, config) : context.configPath;
    if (config === true) throw new UsageError("--config needs a value");
    return callRpc({ ...context, configPath }, rest);
  },
};

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
  const { api, token, help, rest: given } = takeOwn(words);
  const rest = commandFirst(given);
  const found = server ?? (await findServer(context, api, token));
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
