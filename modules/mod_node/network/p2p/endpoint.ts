/** Opens the local ends of p2p streams: sockets given by multiaddr. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { CODE_TCP, CODE_UDP, CODE_UNIX, type Multiaddr } from "@multiformats/multiaddr";
import { failure } from "../../util/errors.ts";
import { parseMultiaddr } from "../swarm/multiaddr.ts";

/** The options that `node:net` accepts; a path for `/unix/...`. */
type Endpoint = { readonly host: string; readonly port: number } | { readonly path: string };

const HOST_PROTOCOLS = new Set(["ip4", "ip6", "dns", "dns4", "dns6"]);

/** @throws NodeError for an address that is neither TCP nor a Unix socket */
export function endpointOf(address: Multiaddr): Endpoint {
  const parts = address.getComponents();
  const path = parts.find(({ code }) => code === CODE_UNIX)?.value;
  if (path !== undefined) return { path };
  const host = parts.find(({ name }) => HOST_PROTOCOLS.has(name))?.value;
  const port = parts.find(({ code }) => code === CODE_TCP)?.value;
  if (host === undefined || port === undefined) {
    throw failure("ADDRESS_INVALID", {
      reason: `${address} is neither a TCP address nor a local socket: only these can be forwarded`,
    });
  }
  return { host, port: Number(port) };
}

/** @throws NodeError with go-ipfs's text for a target without a port */
export function requireTarget(address: Multiaddr): void {
  const port = address.getComponents().find(({ code }) => code === CODE_TCP || code === CODE_UDP)?.value;
  if (port === undefined) throw failure("ADDRESS_INVALID", { reason: "address does not contain tcp or udp protocol" });
  if (Number(port) === 0) throw failure("ADDRESS_INVALID", { reason: "port can not be 0" });
}

/** Resolves to a connected socket that may be half open. */
export async function connectTo(address: Multiaddr, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ ...endpointOf(address), allowHalfOpen: true });
  const abort = () => socket.destroy(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  socket.once("error", reject);
  socket.once("connect", () => {
    signal.removeEventListener("abort", abort);
    socket.removeListener("error", reject);
    resolve(socket);
  });
  return promise;
}

export interface LocalListener {
  /** The address it listens on, with the port that the system has chosen for port 0. */
  readonly address: Multiaddr;
  /** Stops accepting connections; open ones continue. */
  close(): void;
}

export async function listenAt(address: Multiaddr, onConnection: (socket: Socket) => void): Promise<LocalListener> {
  const endpoint = endpointOf(address);
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(endpoint, resolve);
  });
  server.on("error", () => {});
  return { address: "path" in endpoint ? address : (boundTo(server) ?? address), close: () => void server.close() };
}

function boundTo(server: Server): Multiaddr | undefined {
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? tcpAddress(bound.address, bound.port) : undefined;
}

/** Returns the remote address of an accepted connection; a Unix socket has none. */
export const originOf = ({ remoteAddress, remotePort }: Socket): Multiaddr | undefined =>
  remoteAddress === undefined || remotePort === undefined ? undefined : tcpAddress(remoteAddress, remotePort);

function tcpAddress(host: string, port: number): Multiaddr {
  const plain = host.replace(/^::ffff:/, "").replace(/%.*$/, "");
  return parseMultiaddr(`/${plain.includes(":") ? "ip6" : "ip4"}/${plain}/tcp/${port}`);
}
