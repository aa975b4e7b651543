/**
 * Makes everything in a sandbox that opens connections or listens ask the host for it: `node:net`,
 * `node:tls`, `node:http`, `node:http2`, `fetch`, and packages that use those.
 */
import dgram from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { type NetConnectOpts, Socket } from "node:net";
import tls, { TLSSocket } from "node:tls";
import type { CarriedEnds } from "./broker.ts";
import { type CarriedServersDeps, replaceServers } from "./carried_server.ts";
import { carry } from "./carried_socket.ts";

/** Bytes of the line with which a connection of the host begins. */
const MAX_LINE = 20;

export interface ReplacedNetworkDeps extends Pick<CarriedServersDeps, "listen" | "unlisten"> {
  /** Asks the host for a connection. */
  dial(host: string, port: number): Promise<CarriedEnds>;
  /** Returns the error for something that no host or address can be granted for. */
  refuse(what: string): Error;
}

/** The functions that the host's messages and connections go to. */
export interface ReplacedNetwork {
  /** Must be called with each connection that the host opens to this sandbox. */
  carried(inner: Socket): void;
  /** Must be called for each connection that a server of this sandbox gets. */
  accepted(server: number, ends: CarriedEnds): void;
}

export function replaceNetwork({ dial, refuse, listen, unlisten }: ReplacedNetworkDeps): ReplacedNetwork {
  /** Connections and replies may arrive in either order. */
  const waiting = new Map<number, PromiseWithResolvers<Socket>>();
  const slot = (id: number) => {
    let found = waiting.get(id);
    if (found === undefined) {
      found = Promise.withResolvers<Socket>();
      waiting.set(id, found);
    }
    return found;
  };
  const connection = async (id: number) => {
    const inner = await slot(id).promise;
    waiting.delete(id);
    return inner;
  };
  const open = async (host: string, port: number) => {
    const dialed = await dial(host, port);
    return { ...dialed, inner: await connection(dialed.id) };
  };

  Socket.prototype.connect = function (this: Socket, ...values: unknown[]): Socket {
    const { options, listener } = readConnect(values);
    if (this instanceof TLSSocket) throw refuse("connect a TLSSocket itself: use tls.connect");
    if (listener !== undefined) this.once("connect", listener);
    carry(this, () => {
      if ("path" in options && typeof options.path === "string")
        return Promise.reject(refuse(`connect to the socket ${options.path}`));
      const { host = "localhost", port } = options as { host?: string; port: number | string };
      return open(String(host), Number(port));
    });
    return this;
  } as Socket["connect"];

  const connectTls = tls.connect;
  tls.connect = ((...values: unknown[]) => {
    const { options, listener } = readConnect(values);
    const given = options as tls.ConnectionOptions;
    if (given.socket !== undefined) return connectTls(given, listener);
    const socket = new Socket({ allowHalfOpen: true });
    socket.connect({ ...given } as NetConnectOpts);
    return connectTls({ ...given, socket }, listener);
  }) as typeof tls.connect;

  const accepted = replaceServers({ listen, unlisten, connection, refuse });
  refuseOthers(refuse);
  syncBuiltinESMExports();
  return { accepted, carried: (inner) => readId(inner, (id) => slot(id).resolve(inner)) };
}

/** Refuses what would fail in the kernel with an error that explains nothing. */
function refuseOthers(refuse: ReplacedNetworkDeps["refuse"]): void {
  const late = (error: Error, callback: unknown) => {
    if (typeof callback === "function") setImmediate(() => callback(error));
    else throw error;
  };
  const names = "resolve names itself: connect by name, and the host resolves it";
  const waits = (...values: unknown[]) => late(refuse(names), values.at(-1));
  const rejects = () => Promise.reject(refuse(names));
  for (const [api, refused] of [
    [dns, waits],
    [dns.Resolver.prototype, waits],
    [dns.promises, rejects],
    [dns.promises.Resolver.prototype, rejects],
  ] as const) {
    const lookups = Object.getOwnPropertyNames(api).filter((name) => /^(?:lookup|resolve|reverse)/.test(name));
    for (const name of lookups)
      Object.defineProperty(api, name, { value: refused, writable: true, configurable: true });
  }
  dgram.createSocket = () => {
    throw refuse("use UDP");
  };
}

/** Reads the arguments of `connect`: options, a port with a host, a path, and a listener. */
function readConnect(values: readonly unknown[]): { options: NetConnectOpts; listener: (() => void) | undefined } {
  // Node's own functions pass one list with the options and the listener.
  const [first, ...rest] = Array.isArray(values[0]) ? (values[0] as unknown[]) : values;
  const listener = rest.findLast((value) => typeof value === "function") as (() => void) | undefined;
  if (typeof first === "object" && first !== null) return { options: first as NetConnectOpts, listener };
  const more = rest.find((value) => typeof value === "object" && value !== null) ?? {};
  if (typeof first === "string" && Number.isNaN(Number(first))) return { options: { ...more, path: first }, listener };
  const host = typeof rest[0] === "string" ? { host: rest[0] } : {};
  return { options: { ...more, ...host, port: Number(first) } as NetConnectOpts, listener };
}

/** Reads the line with the id of the dial. The bytes that follow are read later, by the socket. */
function readId(inner: Socket, found: (id: number) => void): void {
  let line = Buffer.alloc(0);
  inner.on("error", () => undefined);
  const read = () => {
    for (let piece = inner.read() as Buffer | null; piece !== null; piece = inner.read() as Buffer | null) {
      line = Buffer.concat([line, piece]);
      const end = line.indexOf(10);
      if (end < 0 && line.length < MAX_LINE) continue;
      inner.off("readable", read);
      if (end < 0) inner.destroy();
      else {
        if (line.length > end + 1) inner.unshift(line.subarray(end + 1));
        found(Number(line.toString("latin1", 0, end)));
      }
      return;
    }
  };
  inner.on("readable", read);
}
