/** The IPC channel between two processes: calls, and sockets of the system next to them. */
import { Socket, type SocketConstructorOpts } from "node:net";
import { Channel, type Handlers, type MessageEndpoint } from "./channel.ts";

/** A listening socket or a connection of the system, without Node's object around it. */
export type SocketHandle = object;

/** A child process, or this process towards its parent. */
export interface IpcPeer {
  send?(message: unknown, handle: unknown, options: object | undefined, sent: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown, handle: unknown) => void): unknown;
  readonly connected: boolean;
}

/** A connection that is handed to another process. */
export interface HandedConnection {
  readonly handle: SocketHandle;
  /** The service that serves it: "http" or "https". */
  readonly service: string;
  /** The bytes that have been read from it. */
  readonly head: Uint8Array;
  /** The number of the process that is to serve it. */
  readonly to: number;
  /**
   * The time (`now`) from which no process may take it, because the client has then got a response.
   */
  readonly until: number;
}

/** The parent process, as the other end of the channel. */
export function parentProcess(): IpcPeer {
  return {
    send: process.send?.bind(process) as Exclude<IpcPeer["send"], undefined>,
    on: (event, listener) => process.on(event, listener),
    get connected() {
      return process.connected;
    },
  };
}

/** Takes a connection and is responsible for closing it. */
export type TakeConnection = (connection: HandedConnection) => void;

/** Returns milliseconds of the monotonic clock, which all processes of a machine share. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

export class IpcChannel extends Channel {
  readonly #peer: IpcPeer;
  /** Sockets that have arrived and that nobody has taken yet, by key. */
  readonly #handles: Map<string, SocketHandle>;
  #handedOver = 0;

  /** Handlers may be added later. `onStray` gets messages that do not belong to the channel. */
  constructor(peer: IpcPeer, handlers: Handlers, onConnection: TakeConnection, onStray?: (message: unknown) => void) {
    const handles = new Map<string, SocketHandle>();
    const endpoint: MessageEndpoint = {
      postMessage: (message) => send(peer, message),
      on: (_event, listener) =>
        peer.on("message", (message, handle) => {
          const { socket } = (message ?? {}) as { readonly socket?: unknown };
          if (typeof socket === "string") keep(socket, handle);
          else {
            if (handle !== undefined) closeHandle(handle);
            listener(message);
          }
        }),
    };
    const connection = (key: string, facts: Omit<HandedConnection, "handle">) => {
      const handle = this.take(key);
      // A connection arrives without a handle when its client has left in the meantime.
      if (handle === undefined) return false;
      if (now() >= facts.until) {
        closeHandle(handle);
        return false;
      }
      // The response to the call goes out first: until then the sender may give the connection to
      // another process.
      setImmediate(() => onConnection({ ...facts, handle }));
      return true;
    };
    super(endpoint, Object.assign(handlers, { connection }), onStray);
    this.#peer = peer;
    this.#handles = handles;
    const keep = (key: string, handle: unknown) => {
      if (handle === undefined) return;
      closeHandle(handles.get(key));
      handles.set(key, handle as SocketHandle);
      if (this.ended !== undefined) this.#closeHandles();
    };
  }

  /** Sends a socket. Later messages arrive after it. */
  give(key: string, handle: SocketHandle): void {
    send(this.#peer, { socket: key }, handle);
  }

  /**
   * Hands a connection over. Resolves to true once the other end has its own descriptor, and to
   * false when it never will. Rejects when the other end has ended without taking it. The caller
   * must keep the handle open until then.
   */
  async handOver({ handle, ...facts }: HandedConnection): Promise<boolean> {
    this.#handedOver += 1;
    const key = `connection ${this.#handedOver}`;
    this.give(key, handle);
    return (await this.call("connection", key, facts)) === true;
  }

  /** Takes a socket that has arrived; undefined if none has. */
  take(key: string): SocketHandle | undefined {
    const handle = this.#handles.get(key);
    this.#handles.delete(key);
    return handle;
  }

  /** Takes those of these sockets that have arrived, and passes on the facts about each. */
  takeAll<T extends { readonly key: string }>(wanted: readonly T[]): (T & { readonly handle: SocketHandle })[] {
    return wanted.flatMap((facts) => {
      const handle = this.take(facts.key);
      return handle === undefined ? [] : [{ ...facts, handle }];
    });
  }

  /**
   * Must be called when the other end has gone: rejects pending calls and closes received sockets
   * that were not taken.
   */
  override end(error: Error): void {
    super.end(error);
    this.#closeHandles();
  }

  #closeHandles(): void {
    for (const handle of this.#handles.values()) closeHandle(handle);
    this.#handles.clear();
  }
}

/**
 * A message to a process that has ended is lost, and `end` rejects the call that waits for its
 * response.
 */
function send(peer: IpcPeer, message: unknown, handle?: SocketHandle): void {
  if (peer.connected) peer.send?.(message, handle, undefined, () => undefined);
}

/** Returns the socket of a connection that has been handed to this process. */
export function socketOf({ handle, head }: HandedConnection): Socket {
  const socket = new Socket({ handle, allowHalfOpen: true } as SocketConstructorOpts);
  socket.on("error", () => undefined);
  if (head.length > 0) socket.unshift(head);
  return socket;
}

export function closeHandle(handle: unknown): void {
  (handle as { close?(): void } | undefined)?.close?.();
}
