/** A socket of `node:net` within a sandbox, whose bytes are carried by the host. */
import type { Socket } from "node:net";
import type { CarriedEnds } from "./broker.ts";

type Done = (error?: Error | null) => void;
type Piece = { readonly chunk: Uint8Array | string; readonly encoding: BufferEncoding };

/** A connection of the host's to this sandbox, and the ends of what it is joined with. */
export interface Carrier extends CarriedEnds {
  readonly inner: Socket;
}

/**
 * Makes a socket that is not connected read and write the connection that `dial` resolves to. It
 * emits the events that a socket of the system emits. `connected` is called before them.
 */
export function carry(socket: Socket, dial: () => Promise<Carrier>, connected?: () => void): void {
  new CarriedSocket(socket, connected).connect(dial());
}

class CarriedSocket {
  readonly #socket: Socket;
  readonly #reportConnected: () => void;
  /** The host's connection to this sandbox. */
  #inner: Socket | undefined;
  #bytesRead = 0;
  readonly #waiting: { readonly use: (inner: Socket) => void; readonly failed: Done }[] = [];

  constructor(socket: Socket, connected: () => void = () => undefined) {
    this.#socket = socket;
    this.#reportConnected = connected;
    define(socket, { connecting: true, ...this.#streamHooks(), ...this.#methods() });
    defineGetters(socket, {
      pending: () => socket.connecting,
      bytesRead: () => this.#bytesRead,
      bytesWritten: () => this.#inner?.bytesWritten ?? 0,
    });
  }

  connect(connection: Promise<Carrier>): void {
    connection.then(
      (carrier) => this.#connected(carrier),
      (error: Error) => {
        for (const { failed } of this.#waiting.splice(0)) failed(error);
        this.#socket.destroy(error);
      },
    );
  }

  /** The functions that a stream calls to read and write. */
  #streamHooks(): object {
    const write = (data: Uint8Array, done: Done) => {
      this.#whenConnected((inner) => void inner.write(data, (error) => done(error)), done);
    };
    return {
      _read: () => this.#whenConnected((inner) => void inner.resume()),
      _write: (chunk: Uint8Array | string, encoding: BufferEncoding, done: Done) =>
        write(bytesOf(chunk, encoding), done),
      _writev: (pieces: readonly Piece[], done: Done) =>
        write(Buffer.concat(pieces.map(({ chunk, encoding }) => bytesOf(chunk, encoding))), done),
      _final: (done: Done) => this.#whenConnected((inner) => void inner.end(() => done()), done),
      _destroy: (error: Error | null, done: Done) => {
        this.#whenConnected((inner) => void inner.destroy());
        done(error);
        setImmediate(() => this.#socket.emit("close", error !== null));
      },
    };
  }

  /** The methods of `net.Socket` that would need a handle of the system. */
  #methods(): object {
    const socket = this.#socket;
    const passOn = (act: (inner: Socket) => unknown) => () => {
      this.#whenConnected((inner) => void act(inner));
      return socket;
    };
    return {
      setTimeout: (milliseconds: number, listener?: () => void) => {
        define(socket, { timeout: milliseconds });
        if (listener !== undefined) socket.once("timeout", listener);
        return passOn((inner) => inner.setTimeout(milliseconds))();
      },
      setNoDelay: () => socket,
      setKeepAlive: () => socket,
      ref: passOn((inner) => inner.ref()),
      unref: passOn((inner) => inner.unref()),
      resetAndDestroy: () => socket.destroy(),
    };
  }

  #whenConnected(use: (inner: Socket) => void, failed: Done = () => undefined): void {
    if (this.#inner === undefined) this.#waiting.push({ use, failed });
    else use(this.#inner);
  }

  #connected({ inner, localAddress, localPort, remoteAddress, remotePort }: Carrier): void {
    const socket = this.#socket;
    this.#inner = inner;
    if (socket.destroyed) {
      inner.destroy();
      return;
    }
    const family = remoteAddress?.includes(":") === true ? "IPv6" : "IPv4";
    const local = { address: localAddress, family, port: localPort };
    define(socket, { connecting: false, address: () => local });
    defineGetters(socket, {
      localAddress: () => localAddress,
      localPort: () => localPort,
      localFamily: () => family,
      remoteAddress: () => remoteAddress,
      remotePort: () => remotePort,
      remoteFamily: () => family,
    });
    inner.on("data", (piece: Buffer) => {
      this.#bytesRead += piece.length;
      if (!socket.push(piece)) inner.pause();
    });
    inner.on("end", () => {
      socket.push(null);
      // Nobody may be reading, and the end is to be noticed all the same.
      socket.read(0);
    });
    inner.on("error", (error) => socket.destroy(error));
    inner.on("timeout", () => socket.emit("timeout"));
    inner.on("close", () => {
      // The bytes that came before the end are delivered first.
      if (!inner.readableEnded) socket.destroy();
    });
    inner.pause();
    for (const { use } of this.#waiting.splice(0)) use(inner);
    this.#reportConnected();
    socket.emit("connect");
    socket.emit("ready");
    socket.read(0);
  }
}

function define(socket: Socket, values: object): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(socket, name, { value, writable: true, configurable: true });
  }
}

function defineGetters(socket: Socket, getters: Readonly<Record<string, () => unknown>>): void {
  for (const [name, get] of Object.entries(getters)) Object.defineProperty(socket, name, { get, configurable: true });
}

function bytesOf(chunk: Uint8Array | string, encoding: BufferEncoding): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
}
