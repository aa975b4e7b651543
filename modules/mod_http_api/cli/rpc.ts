import { resolve } from "node:path";
import { type Command, takeOptions, UsageError } from "../../../core/cli/index.ts";
import { callOptions } from "./rpc/parse.ts";

const { api, token, "api-auth": apiAuth, encoding, timeout } = callOptions;
const configOption = {
  config: { type: "string", short: "c", value: "FILE", help: "Read this config file to find the repo" },
} as const;

export const command: Command = {
  name: "rpc",
  arguments: "COMMAND [ARGUMENTS]",
  help: "Call a command of a running server's node, such as add or pin ls; without a command, list them all",
  about: [
    "It calls the server that --api names, else the one of a repo, whose file `api` has its address while it runs. The",
    "repo is that of the config file which --config names, else of $IPFS_PATH, else of the configuration as `run` finds it",
    "(node_repo, else repo in data_path). When no server runs there, the call fails; only where nothing names a repo and",
    "there is no ./data/repo, the server at 127.0.0.1:5280 is called, and the standard error says so.",
    "On a terminal many answers are tables, with sizes that people read, and what takes long tells how far it is; in a pipe,",
    "and with --encoding, --quiet, --human, --verbose and the like, answers are what the server writes.",
  ].join("\n"),
  verbatim: true,
  options: {
    api: {
      ...api,
      help: "The server: a URL, HOST:PORT or a multiaddress; default: the one in the file `api` of the repo",
    },
    token,
    "api-auth": apiAuth,
    encoding,
    timeout,
    ...configOption,
  },
  // Help and completion use the commands of this version, which most servers have.
  subcommands: async () => (await import("./node/help.ts")).subcommands(),
  async run(context) {
    const { values, rest } = takeOptions(context.args, configOption);
    const { config } = values;
    const configPath = typeof config === "string" ? resolve(context.cwd, config) : context.configPath;
    if (config === true) throw new UsageError("--config needs a value");
    // Imported only here, because servers start without it.
    const { callRpc } = await import("./rpc/call.ts");
    return callRpc({ ...context, configPath }, rest);
  },
};
