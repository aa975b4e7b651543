/** Servers of `node:net` within a sandbox, whose ports the host opens. */
import { Server, Socket } from "node:net";
import type { CarriedEnds } from "./broker.ts";
import { carry } from "./carried_socket.ts";
import type { CarriedPort } from "./sandbox_servers.ts";

export interface CarriedServersDeps {
  /** Asks the host to open a port. */
  listen(address: string | undefined, port: number): Promise<CarriedPort>;
  /** Asks the host to close it again. */
  unlisten(id: number): void;
  /** Resolves to the connection that the host has opened for these ends. */
  connection(id: number): Promise<Socket>;
  /** Returns the error for something that cannot be granted. */
  refuse(what: string): Error;
}

/** The arguments of `listen`. */
interface ListenArguments {
  readonly host: string | undefined;
  readonly port: number;
  readonly signal: AbortSignal | undefined;
  readonly listener: (() => void) | undefined;
}

/**
 * Replaces what makes servers listen: those of `node:http` and the others use it. Returns a
 * function for each connection that a server of this sandbox gets.
 */
export function replaceServers(deps: CarriedServersDeps): (server: number, ends: CarriedEnds) => void {
  const servers = new WeakMap<Server, CarriedServer>();
  const listening = new Map<number, CarriedServer>();
  const prototype = Server.prototype;
  const native = Object.getOwnPropertyDescriptors(prototype);
  const replace = (name: keyof Server | symbol, value: (this: Server, ...values: never[]) => unknown) =>
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  /** Servers that listened before the replacement keep what Node.js gives them. */
  const replaceMethod = (name: "close" | "address" | "getConnections" | "ref" | "unref") =>
    replace(name, function (...values) {
      const carried = servers.get(this);
      const method = native[name].value as (...all: unknown[]) => unknown;
      return carried === undefined ? method.apply(this, values) : (carried[name] as typeof method)(...values);
    });

  replace("listen", function (...values) {
    const request = readListen(values, deps.refuse);
    if (servers.get(this)?.isListening === true) {
      const message = "Listen method has been called more than once without closing.";
      throw Object.assign(new Error(message), { code: "ERR_SERVER_ALREADY_LISTEN" });
    }
    const carried = new CarriedServer(this, deps, listening);
    servers.set(this, carried);
    carried.listen(request);
    return this;
  });
  for (const name of ["close", "address", "getConnections", "ref", "unref"] as const) replaceMethod(name);
  const isListening = native.listening.get as (this: Server) => boolean;
  Object.defineProperty(prototype, "listening", {
    get(this: Server) {
      return servers.get(this)?.isListening ?? isListening.call(this);
    },
    configurable: true,
  });
  replace(Symbol.asyncDispose, async function () {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.listening) return;
    this.close(() => resolve());
    await promise;
  });
  return (server, ends) => {
    // The reply with the number of the server may have arrived together with this notification. It
    // is handled first.
    setImmediate(() => {
      const carried = listening.get(server);
      if (carried === undefined) void deps.connection(ends.id).then((inner) => inner.destroy());
      else carried.accept(ends);
    });
  };
}

class CarriedServer {
  readonly #server: Server;
  readonly #deps: CarriedServersDeps;
  readonly #listening: Map<number, CarriedServer>;
  readonly #sockets = new Set<Socket>();
  #bound: CarriedPort | undefined;
  isListening = false;

  constructor(server: Server, deps: CarriedServersDeps, listening: Map<number, CarriedServer>) {
    this.#server = server;
    this.#deps = deps;
    this.#listening = listening;
  }

  listen({ host, port, signal, listener }: ListenArguments): void {
    const server = this.#server;
    if (listener !== undefined) server.once("listening", listener);
    this.isListening = true;
    signal?.addEventListener("abort", () => server.close(), { once: true });
    if (signal?.aborted === true) setImmediate(() => server.close());
    this.#deps.listen(host, port).then(
      (bound) => {
        // It was closed before the host had opened the port.
        if (!this.isListening) {
          this.#deps.unlisten(bound.id);
          return;
        }
        this.#bound = bound;
        this.#listening.set(bound.id, this);
        server.emit("listening");
      },
      (error: Error) => {
        if (!this.isListening) return;
        this.isListening = false;
        server.emit("error", error);
      },
    );
  }

  readonly accept = (ends: CarriedEnds): void => {
    const server = this.#server as Server & { allowHalfOpen?: boolean; pauseOnConnect?: boolean };
    const { maxConnections = Number.POSITIVE_INFINITY, allowHalfOpen = false, pauseOnConnect = false } = server;
    const inner = this.#deps.connection(ends.id);
    if (this.#sockets.size >= maxConnections) {
      void inner.then((socket) => socket.destroy());
      server.emit("drop", ends);
      return;
    }
    const socket = new Socket({ allowHalfOpen });
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#closeIfDrained();
    });
    if (pauseOnConnect) socket.pause();
    const carrier = async () => ({ ...ends, inner: await inner });
    // A `TLSSocket` around a socket that has no handle waits for the event "connect", which
    // follows.
    carry(socket, carrier, () => void server.emit("connection", Object.assign(socket, { server })));
  };

  readonly close = (callback?: (error?: Error) => void): Server => {
    const server = this.#server;
    const wasListening = this.isListening;
    if (callback !== undefined) {
      const message = "Server is not running.";
      const error = wasListening ? undefined : Object.assign(new Error(message), { code: "ERR_SERVER_NOT_RUNNING" });
      server.once("close", () => callback(error));
    }
    this.isListening = false;
    if (this.#bound !== undefined) {
      this.#listening.delete(this.#bound.id);
      this.#deps.unlisten(this.#bound.id);
      this.#bound = undefined;
    }
    this.#closeIfDrained();
    return server;
  };

  readonly address = () => {
    if (this.#bound === undefined) return null;
    const { address, port } = this.#bound;
    return { address, family: address.includes(":") ? "IPv6" : "IPv4", port };
  };

  readonly getConnections = (callback: (error: Error | null, count: number) => void): Server => {
    process.nextTick(callback, null, this.#sockets.size);
    return this.#server;
  };

  // The socket to the host keeps the process alive, whatever its servers do.
  readonly ref = (): Server => this.#server;
  readonly unref = (): Server => this.#server;

  #closeIfDrained(): void {
    if (this.isListening || this.#sockets.size > 0) return;
    process.nextTick(() => {
      if (!this.isListening && this.#sockets.size === 0) this.#server.emit("close");
    });
  }
}

/**
 * Reads the arguments of `listen`: a port with an address and a backlog, options, and a listener.
 * @throws the refusal of sockets that only the system can open
 */
function readListen(values: readonly unknown[], refuse: CarriedServersDeps["refuse"]): ListenArguments {
  const listener = values.findLast((value) => typeof value === "function") as (() => void) | undefined;
  const [first, second] = values;
  const isObject = typeof first === "object" && first !== null;
  const options = (isObject ? first : { port: first, host: second }) as {
    readonly port?: unknown;
    readonly host?: unknown;
    readonly path?: unknown;
    readonly signal?: AbortSignal;
  };
  const { port, host, path, signal } = options;
  if (typeof path === "string" || (typeof port === "string" && !/^\d+$/.test(port)))
    throw refuse(`listen on the socket ${String(path ?? port)}`);
  if (isObject && port === undefined) throw refuse("listen on a descriptor or handle");
  const number = Number(typeof port === "function" || port === undefined || port === null ? 0 : port);
  if (number === 0) throw refuse("listen on a port that the system chooses");
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    const message = `options.port should be >= 0 and < 65536. Received ${String(port)}.`;
    throw Object.assign(new RangeError(message), { code: "ERR_SOCKET_BAD_PORT" });
  }
  return { host: typeof host === "string" && host !== "" ? host : undefined, port: number, signal, listener };
}
