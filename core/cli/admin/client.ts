/**
 * The client of the Admin API: sends requests of commands to the server that runs on the same
 * configuration.
 */
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { dirname, join, resolve } from "node:path";
import { bundled } from "../../../config/bundled.ts";
import { loadConfig } from "../../config/index.ts";
import type { ServerStatus } from "../../types.ts";
import { reasonOf } from "../../util/errors.ts";
import { request } from "../../util/node_http.ts";
import { type CommandContext, type CommandOption, UsageError } from "../command.ts";
import { linesOf } from "./lines.ts";

/** Exit code of a command that found no running server. */
export const NO_SERVER = 3;

/** The option of every command that calls the server. */
export const socketOption = {
  socket: {
    type: "string",
    value: "PATH",
    help: "The admin socket of the server; default: that of the configuration",
  },
} as const satisfies Record<string, CommandOption>;

/** A response of the Admin API. */
export interface AdminResponse<T> {
  readonly status: number;
  readonly value: T;
}

/** No server runs on the configuration, or this user cannot reach it. */
export class NoServerError extends Error {}

/** A server has the socket open, but does not respond. */
export class StuckServerError extends Error {}

/** The Admin API refused the call itself. */
export class RefusedError extends Error {}

interface ConfigLocation extends Pick<CommandContext, "configPath" | "cwd" | "env"> {
  /** If false, only a config file that is named is read: the usual paths are not searched. */
  readonly search?: boolean | undefined;
}

/** Returns the admin socket of the server that `modhost run` would start with the same options. */
export async function adminSocket(
  { configPath, cwd, env, search = true }: ConfigLocation,
  named?: unknown,
): Promise<string> {
  if (named === true) throw new UsageError("--socket needs a value");
  if (typeof named === "string") return resolve(cwd, named);
  const config = await loadConfig({ path: configPath, cwd, env, search });
  const given = config.raw("admin_socket");
  if (typeof given === "string") return resolve(config.directory, given);
  return join(String(config.value("data_path")), "admin.sock");
}

/** Milliseconds after which a server that has not returned its status counts as stuck. */
const MAX_STATUS_WAIT = 10_000;

/**
 * Returns the status of the server. Commands that call it first do not wait for ever on a stuck
 * server.
 * @throws {NoServerError} no server listens on the socket
 * @throws {StuckServerError} it accepts the call, and does not respond `within` this many
 * milliseconds
 */
export async function statusOf(socketPath: string, { within = MAX_STATUS_WAIT } = {}): Promise<ServerStatus> {
  const signal = AbortSignal.timeout(within);
  try {
    return (await send<ServerStatus>(socketPath, "GET", "/status", undefined, signal)).value;
  } catch (error) {
    if (!signal.aborted || error instanceof RefusedError) throw error;
    throw new StuckServerError(stuck(socketPath, within));
  }
}

/**
 * Calls an operation of the Admin API and waits for its response without a limit, or until the
 * signal aborts.
 * @throws {NoServerError} no server listens on the socket
 * @throws {RefusedError} the call is wrong, or not allowed
 */
export async function send<T>(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<AdminResponse<T>> {
  assertOwn(socketPath);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve: received, reject } = Promise.withResolvers<AdminResponse<T>>();
  const headers = text === undefined ? {} : { "Content-Type": "application/json" };
  const target = { socketPath, agent: false, method, path: `/admin/api${path}` };
  const sent = request({ ...target, headers, ...(signal === undefined ? {} : { signal }) });
  sent.on("error", (error) => reject(new NoServerError(unreachable(socketPath, error))));
  sent.on("response", async (response) => {
    try {
      const whole = Buffer.concat(await response.toArray()).toString("utf8");
      received({ status: response.statusCode ?? 0, value: JSON.parse(whole) as T });
    } catch (error) {
      reject(new Error(`The response of the server at ${socketPath} cannot be read: ${reasonOf(error)}`));
    }
  });
  sent.end(text);
  const { status, value } = await promise;
  const refusal = (value as { error?: { message?: string } } | undefined)?.error;
  // A record of a change has a `result`, even if it also has an `error`.
  if (status >= 400 && refusal !== undefined && !("result" in (value as object)))
    throw new RefusedError(refusal.message ?? `The server responded with ${status}`);
  return { status, value };
}

/**
 * Calls an operation that responds with lines of JSON. It ends with the response, even if that
 * breaks off. A caller that stops reading closes the connection.
 * @throws {NoServerError} no server listens on the socket
 * @throws {RefusedError} the call is wrong, or not allowed
 */
export async function* sendLines<T>(
  socketPath: string,
  method: string,
  path: string,
  body: object,
  signal: AbortSignal,
): AsyncGenerator<T> {
  assertOwn(socketPath);
  const headers = { "Content-Type": "application/json" };
  const sent = request({ socketPath, agent: false, method, path: `/admin/api${path}`, headers, signal });
  sent.end(JSON.stringify(body));
  const response = await once(sent, "response").then(
    ([response]) => response as IncomingMessage,
    (error: unknown) => {
      throw new NoServerError(unreachable(socketPath, error));
    },
  );
  sent.on("error", () => undefined);
  try {
    for await (const line of linesOf(response)) {
      if (response.statusCode === 200) yield JSON.parse(line) as T;
      else throw new RefusedError(messageIn(line) ?? `The server responded with ${response.statusCode}`);
    }
    signal.throwIfAborted();
  } finally {
    sent.destroy();
  }
}

function messageIn(line: string): string | undefined {
  try {
    return (JSON.parse(line) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

/**
 * Refuses a socket that another user has created.
 * @throws {NoServerError}
 */
export function assertOwn(socketPath: string): void {
  const socket = lstatSync(socketPath, { throwIfNoEntry: false });
  if (socket === undefined) throw new NoServerError(absent(socketPath));
  const own = [process.getuid?.(), 0, statSync(dirname(socketPath)).uid];
  if (!socket.isSocket() || !own.includes(socket.uid))
    throw new NoServerError(`${socketPath} is not a socket of this user's server: it belongs to uid ${socket.uid}`);
}

function stuck(socketPath: string, ms: number): string {
  return `The server at ${socketPath} has not responded for ${ms / 1000} s: it is suspended, or a module blocks its event loop, which its log reports. If that does not end, kill its process (kill -9) and start it again`;
}

function absent(socketPath: string): string {
  return `No server runs here: there is no socket ${socketPath}. Start one with modhost run; if one runs, name its config file with --config, and check that ${bundled.control} is among its modules_enabled`;
}

/** Returns for people why no server was reached at a socket. */
export function unreachable(socketPath: string, error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return absent(socketPath);
  if (code === "ECONNREFUSED") return `No server runs here: the server that listened on ${socketPath} has ended`;
  if (code === "EACCES" || code === "EPERM")
    return `The server at ${socketPath} belongs to another user: only that user and root can operate it`;
  return `The server at ${socketPath} does not respond: ${reasonOf(error)}`;
}
