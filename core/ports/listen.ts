/** Servers that begin to listen: at an address, or at the path of a Unix socket. */
import { chmod, lstat, rm } from "node:fs/promises";
import { connect, type ListenOptions, type Server } from "node:net";
import { isMainThread } from "node:worker_threads";
import type { NetEndpoint } from "../types.ts";
import { ModhostError } from "../util/errors.ts";

/** What the address of a Unix socket has room for, less the byte that ends it. */
const MAX_SOCKET_PATH_BYTES = process.platform === "linux" ? 107 : 103;

/**
 * As many connections as the system lets wait until they are taken (`somaxconn`). Of a crowd that exceeds it, some would be
 * reset: with Node's own 511 that happens on a busy machine.
 */
const MAX_WAITING_CONNECTIONS = 65_535;

export function listen(server: Server, place: ListenOptions | { readonly fd: number }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ backlog: MAX_WAITING_CONNECTIONS, ...place, exclusive: true }, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}

/** Listens on the socket of another server, which gets no more of its connections. */
export function listenOn(server: Server, former: Server): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(former, MAX_WAITING_CONNECTIONS, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}

/** Takes the place of a socket that nobody listens at. `mode`: who may connect. */
async function listenAtPath(server: Server, path: string, mode?: number): Promise<void> {
  const bytes = Buffer.byteLength(path);
  // The system would take the beginning of a longer one, and nobody would find it.
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

/** `mode` holds from the first moment: the socket is made within the call, under the mask of the process. */
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

/** A socket that a process has left behind which ended without removing it. */
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

/** What the system says of an address that is there; other errors may be of one that this machine lacks, which need not matter. */
export const refusals: ReadonlySet<unknown> = new Set(["EADDRINUSE", "EACCES"]);
export const addressErrors: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", "EAI_AGAIN"]);

/** This machine has no IPv6 (or no loopback of it): no reason to refuse the other addresses. */
export function lacksAddress(error: unknown, address: string): boolean {
  const cause = ModhostError.is(error) ? error.cause : error;
  const code = codeOf(cause);
  return address.includes(":") && (code === "EAFNOSUPPORT" || (code === "EADDRNOTAVAIL" && /^::1?$/.test(address)));
}

export const placeText = (endpoint: NetEndpoint): string =>
  "path" in endpoint ? endpoint.path : `Port ${endpoint.port} of ${endpoint.address}`;

export function listenAt(server: Server, endpoint: NetEndpoint): Promise<void> {
  if ("path" in endpoint) return listenAtPath(server, endpoint.path, endpoint.mode);
  return listen(server, { host: endpoint.address, port: endpoint.port });
}
