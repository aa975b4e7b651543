/** Inspects the server that runs on the configuration, or else the configuration itself. */
import { httpOf } from "../../host/http_module.ts";
import type { Host } from "../../host.ts";
import type { Explanation, RouteInfo } from "../../http/index.ts";
import type { ModuleState, ServerStatus } from "../../types.ts";
import type { CommandContext, CommandOption } from "../command.ts";
import { hostOptions, withHost } from "../hosted.ts";
import { adminSocket, NoServerError, send, socketOption, statusOf } from "./client.ts";

/** Options of commands that inspect the running server if there is one. */
export const lookOptions = {
  offline: { type: "boolean", help: "Use the configuration, even if a server runs on it" },
  ...socketOption,
} as const satisfies Record<string, CommandOption>;

/** Their explanation in `--help`. */
export const lookedAt = [
  "If a server runs on the configuration, the command asks that server, and says so on the standard error. Otherwise, or if",
  "modules or folders are named, it loads the modules as a start would, without opening a port.",
].join("\n");

export interface Looked {
  modules(): readonly ModuleState[] | Promise<readonly ModuleState[]>;
  /** Returns undefined if the module http is not loaded. */
  routes(): readonly RouteInfo[] | undefined | Promise<readonly RouteInfo[] | undefined>;
  explain(method: string, path: string, host?: string): Explanation | Promise<Explanation>;
}

/**
 * Calls `use` with the server that runs on the configuration, and says so on the standard error. If
 * no server runs, files are named or --offline is given, it loads all modules as `run` would,
 * without a port.
 */
export async function look<T>(context: CommandContext, use: (looked: Looked) => Promise<T>): Promise<T> {
  const { options, stderr } = context;
  const given = hostOptions(context, context.args);
  if (options.offline !== true && given.modules === undefined) {
    const socket = await adminSocket({ ...context, configPath: given.configPath ?? undefined }, options.socket);
    const status = await statusAt(socket, options.socket !== undefined);
    if (status !== undefined) {
      stderr.write(
        `modhost: asking the running server (process ${status.pid}, ${socket}); --offline uses the configuration instead\n`,
      );
      return use(running(socket));
    }
  }
  return withHost(given, (host) => use(loaded(host)));
}

async function statusAt(socket: string, isNamed: boolean): Promise<ServerStatus | undefined> {
  try {
    return await statusOf(socket);
  } catch (error) {
    if (isNamed || !(error instanceof NoServerError)) throw error;
    return undefined;
  }
}

function running(socket: string): Looked {
  const get = async <T>(path: string) => (await send<T>(socket, "GET", path)).value;
  return {
    modules: () => get("/modules"),
    routes: () => get("/routes"),
    explain: (method, path, host) => {
      const query = new URLSearchParams({ method, path, ...(host === undefined ? {} : { host }) });
      return get(`/explain?${query}`);
    },
  };
}

function loaded(host: Host): Looked {
  return {
    modules: () => host.modules(),
    routes: () => httpOf(host)?.routes(),
    explain: (method, path, name) => {
      const http = httpOf(host);
      if (http === undefined) throw new Error("The module http is not loaded, so there are no routes");
      return http.explain(method, path, name);
    },
  };
}
