/**
 * Runs the work of a command in the server of the configuration, or here if none runs. So a module
 * can be installed before the first start.
 */
import {
  adminSocket,
  type CommandContext,
  NoServerError,
  send,
  socketOption,
  statusOf,
} from "../../../../core/cli/index.ts";
import { loadConfig } from "../../../../core/index.ts";
import { options } from "../../options.ts";
import { Packages } from "../../packages.ts";
import { settingsOf } from "../../settings.ts";

export { socketOption };

/** Where a command does its work. */
export type Workplace =
  | { readonly kind: "server"; readonly socket: string }
  | { readonly kind: "here"; readonly packages: Packages };

/** @throws Error if a server runs that has not loaded this module */
export async function workplaceOf(context: CommandContext): Promise<Workplace> {
  const socket = await adminSocket(context, context.options.socket);
  try {
    const { modules } = await statusOf(socket);
    if (modules.some(({ name, status }) => name === "packages" && status === "loaded"))
      return { kind: "server", socket };
    throw new Error("The server has not loaded the module packages: add it to modules_enabled");
  } catch (error) {
    if (!(error instanceof NoServerError) || context.options.socket !== undefined) throw error;
  }
  const { configPath: path, cwd, env } = context;
  const config = await loadConfig({ path, cwd, env });
  config.declare(options, "packages");
  const paths = { folder: config.directory, dataPath: String(config.value("data_path")) };
  return { kind: "here", packages: new Packages(() => settingsOf(paths, (option) => config.value(option))) };
}

/** Calls an operation of the Admin API. */
export async function call<T>(socket: string, method: "GET" | "POST", path: string, body?: object): Promise<T> {
  return (await send<T>(socket, method, path, body)).value;
}

const HINT = "No server runs on this configuration: the next start loads it";

/** Shows what a command has done without a server. */
export function showDone({ output, stderr }: CommandContext, done: string): number {
  output.show({ done }, () => done);
  stderr.write(`modhost: ${HINT}\n`);
  return 0;
}
