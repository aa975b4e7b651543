/** Starts servers to listen at an address or at the path of a Unix socket. */
import { chmod, lstat, rm } from "node:fs/promises";
import { connect, type ListenOptions, type Server } from "node:net";
import { isMainThread } from "node:worker_threads";
import type { NetEndpoint } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { asHost } from "../util/usage.ts";

/** Maximum length of the path of a Unix socket, without the terminating byte. */
const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/**
 * The backlog: the maximum that the system allows (`somaxconn`). Connections beyond it would be
 * reset; with Node's default of 511 that happens on a busy machine.
 */
const MAX_WAITING_CONNECTIONS = 65_535;

export function listen(server: Server, target: ListenOptions | { readonly fd: number }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  // The socket belongs to the host, even if a module that is loading has requested it.
  asHost(() =>
    server.listen({ backlog: MAX_WAITING_CONNECTIONS, ...target, exclusive: true }, () => {
      server.off("error", reject);
      resolve();
    }),
  );
  return promise;
}

/**
 * Listens on a port of an address, or of all addresses for `*`: only of IPv4 if this machine has no
 * IPv6.
 */
export async function listenAnywhere(server: Server, address: string, port: number): Promise<void> {
  if (address !== "*") return listen(server, { host: address, port });
  try {
    await listen(server, { host: "::", port });
  } catch (error) {
    if (!lacksAddress(error, "::")) throw error;
    await listen(server, { host: "0.0.0.0", port });
  }
}

/**
 * Listens on the socket of another server, which then accepts no further connections. `queue` is
 * the backlog.
 */
export function listenOn(server: Server, listening: Server, queue = MAX_WAITING_CONNECTIONS): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  asHost(() =>
    server.listen(listening, queue, () => {
      server.off("error", reject);
      resolve();
    }),
  );
  return promise;
}

/** Listens at a path, and replaces a socket that was left there. `mode`: who may connect. */
async function listenAtPath(server: Server, path: string, mode?: number): Promise<void> {
  const bytes = Buffer.byteLength(path);
  // The system would use only the start of a longer path, and nobody would find the socket.
  if (bytes > MAX_SOCKET_PATH_BYTES)
    throw new Error(`the path of a Unix socket has at most ${MAX_SOCKET_PATH_BYTES} bytes, and this one ${bytes}`);
  try {
    await make(server, path, mode);
  } catch (error) {
    if (codeOf(error) !== "EADDRINUSE" || !(await isDeserted(path))) throw error;
    await rm(path, { force: true });
    await make(server, path, mode);
  }
}

/**
 * Creates the socket with `mode` from the first moment: the call creates it under the umask of the
 * process.
 */
async function make(server: Server, path: string, mode: number | undefined): Promise<void> {
  if (mode === undefined) return listen(server, { path });
  const mask = isMainThread ? process.umask(0o777 & ~mode) : undefined;
  let listening: Promise<void>;
  try {
    listening = listen(server, { path });
  } finally {
    if (mask !== undefined) process.umask(mask);
  }
  await listening;
  await chmod(path, mode);
}

/** Returns true for a socket that a process has left behind. */
async function isDeserted(path: string): Promise<boolean> {
  if (!(await lstat(path)).isSocket()) return false;
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error) => resolve(codeOf(error) === "ECONNREFUSED"));
  });
}

export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

export const addressErrors: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", "EAI_AGAIN"]);

/**
 * Returns true if this machine has no IPv6 (or no loopback of it), which is no reason to fail: the
 * other addresses are still used.
 */
export function lacksAddress(error: unknown, address: string): boolean {
  const cause = ModhostError.is(error) ? error.cause : error;
  const code = codeOf(cause);
  return address.includes(":") && (code === "EAFNOSUPPORT" || (code === "EADDRNOTAVAIL" && /^::1?$/.test(address)));
}

export const endpointText = (endpoint: NetEndpoint): string =>
  "path" in endpoint ? endpoint.path : `port ${endpoint.port} of ${endpoint.address}`;

export function listenAt(server: Server, endpoint: NetEndpoint): Promise<void> {
  if ("path" in endpoint) return listenAtPath(server, endpoint.path, endpoint.mode);
  return listen(server, { host: endpoint.address, port: endpoint.port });
}
