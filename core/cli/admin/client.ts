/** The client of the Admin API: what commands ask of the server that runs on the same configuration. */
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { dirname, join, resolve } from "node:path";
import { loadConfig } from "../../config/index.ts";
import type { ServerStatus } from "../../types.ts";
import { reasonOf } from "../../util/errors.ts";
import { request } from "../../util/node_http.ts";
import { type CommandContext, type CommandOption, UsageError } from "../command.ts";
import { linesOf } from "./lines.ts";

/** Exit code of a command that found no running server. */
export const NO_SERVER = 3;

/** For every command that calls the server. */
export const socketOption = {
  socket: {
    type: "string",
    value: "PATH",
    help: "The server whose admin socket this is; default: by the configuration",
  },
} as const satisfies Record<string, CommandOption>;

/** An answer of the Admin API. */
export interface AdminAnswer<T> {
  readonly status: number;
  readonly value: T;
}

/** No server runs on the configuration, or none that this user can reach. */
export class NoServerError extends Error {}

/** A server has the socket open, and answers nothing. */
export class StuckServerError extends Error {}

/** The Admin API refused the call itself. */
export class RefusedError extends Error {}

interface Place extends Pick<CommandContext, "configPath" | "cwd" | "env"> {
  /** False: without a config file none is looked for. */
  readonly search?: boolean | undefined;
}

/** The socket of the server that `modhost run` would be with the same options. */
export async function adminSocket({ configPath, cwd, env, search = true }: Place, named?: unknown): Promise<string> {
  if (named === true) throw new UsageError("--socket needs a value");
  if (typeof named === "string") return resolve(cwd, named);
  const config = await loadConfig({ path: configPath, cwd, env, search });
  const given = config.raw("admin_socket");
  if (typeof given === "string") return resolve(config.directory, given);
  return join(String(config.value("data_path")), "admin.sock");
}

/** Milliseconds after which a server that has not said how it is counts as stuck. */
const MAX_STATUS_WAIT = 10_000;

/**
 * How the server is. Whoever begins with it does not wait for ever where the server is stuck.
 * @throws {NoServerError} nobody answers at the socket
 * @throws {StuckServerError} it takes the call, and does not answer `within` so many milliseconds
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
 * Calls an operation of the Admin API, and waits for its answer as long as that takes, or until the signal aborts.
 * @throws {NoServerError} nobody answers at the socket
 * @throws {RefusedError} the call is wrong, or not allowed
 */
export async function send<T>(
  socketPath: string,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<AdminAnswer<T>> {
  assertOwn(socketPath);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const { promise, resolve: answered, reject } = Promise.withResolvers<AdminAnswer<T>>();
  const headers = text === undefined ? {} : { "Content-Type": "application/json" };
  const place = { socketPath, agent: false, method, path: `/admin/api${path}` };
  const sent = request({ ...place, headers, ...(signal === undefined ? {} : { signal }) });
  sent.on("error", (error) => reject(new NoServerError(unreachable(socketPath, error))));
  sent.on("response", async (response) => {
    try {
      const whole = Buffer.concat(await response.toArray()).toString("utf8");
      answered({ status: response.statusCode ?? 0, value: JSON.parse(whole) as T });
    } catch (error) {
      reject(new Error(`The answer of the server at ${socketPath} cannot be read: ${reasonOf(error)}`));
    }
  });
  sent.end(text);
  const { status, value } = await promise;
  const refusal = (value as { error?: { message?: string } } | undefined)?.error;
  // Records of changes have a result, and an error beside it.
  if (status >= 400 && refusal !== undefined && !("result" in (value as object)))
    throw new RefusedError(refusal.message ?? `The server answered ${status}`);
  return { status, value };
}

/**
 * Calls an operation that answers a line of JSON after the other; ends with its answer, also where that breaks off. Whoever
 * stops reading leaves.
 * @throws {NoServerError} nobody answers at the socket
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
      else throw new RefusedError(messageIn(line) ?? `The server answered ${response.statusCode}`);
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
 * A socket that somebody else has put there is not the server's.
 * @throws {NoServerError}
 */
export function assertOwn(socketPath: string): void {
  const socket = lstatSync(socketPath, { throwIfNoEntry: false });
  if (socket === undefined) throw new NoServerError(absent(socketPath));
  const own = [process.getuid?.(), 0, statSync(dirname(socketPath)).uid];
  if (!socket.isSocket() || !own.includes(socket.uid))
    throw new NoServerError(`${socketPath} is no socket of this user's server: uid ${socket.uid} has made it`);
}

function stuck(socketPath: string, ms: number): string {
  return `The server at ${socketPath} has not answered for ${ms / 1000} s: it is suspended, or the code of a module holds its event loop, which its log tells. If it stays so, end its process (kill -9) and start it again`;
}

function absent(socketPath: string): string {
  return `No server runs here: there is no socket ${socketPath}. Start one by modhost run; if one runs, name its config file by --config, and see that http_admin is among its modules_enabled`;
}

/** Why nobody was reached at a socket, for people. */
export function unreachable(socketPath: string, error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return absent(socketPath);
  if (code === "ECONNREFUSED") return `No server runs here: nobody listens at ${socketPath} any more`;
  if (code === "EACCES" || code === "EPERM")
    return `The server at ${socketPath} belongs to another user: only that user and root can operate it`;
  return `The server at ${socketPath} does not answer: ${reasonOf(error)}`;
}
