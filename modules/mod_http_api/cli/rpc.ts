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
  help: "Call a command of a running server's node, such as add or pin ls; without a command, list all commands",
  about: [
    "--api names the server. Without it, the address is in the file `api` of a repo, which exists while the server runs. The",
    "repo is that of the config file that --config names, that of $IPFS_PATH, or that of the configuration as `run` finds it",
    "(node_repo, by default repo in data_path). If no server runs there, the call fails. If nothing names a repo and",
    "./data/repo does not exist, the call goes to the server at 127.0.0.1:5280, and a line on the standard error says so.",
    "On a terminal, many responses are tables with readable sizes, and long calls show their progress. In a pipe, and with",
    "options such as --encoding, --quiet, --human and --verbose, responses are printed as the server writes them.",
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
