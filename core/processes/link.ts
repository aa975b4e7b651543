/** The way between the supervisor and one of its processes: calls, and listening sockets beside them. */
import type { Socket } from "node:net";
import { Channel, type Port } from "../isolation/channel.ts";
import type { ListeningHandle } from "../ports/lent.ts";

/** A child process, or this one towards its parent. */
export interface FarEnd {
  send?(message: unknown, handle: unknown, options: object | undefined, sent: Sent): boolean;
  on(event: "message", listener: (message: unknown, handle: unknown) => void): unknown;
  readonly connected: boolean;
}

type Sent = (error: Error | null) => void;

type Handlers = ConstructorParameters<typeof Channel>[1];

interface SocketMessage {
  readonly socket: string;
}

/** A connection, with what has been read of it. */
interface ConnectionMessage {
  readonly connection: Uint8Array;
  /** The number of the process that it is for. */
  readonly to: number;
}

/** Takes connections; who takes one closes it. */
export type TakeConnection = (handle: ListeningHandle, head: Uint8Array, to: number) => void;

export class Link {
  readonly channel: Channel;
  readonly #far: FarEnd;
  /** Sockets that have come, by key, until somebody takes them. */
  readonly #sockets = new Map<string, ListeningHandle>();

  constructor(far: FarEnd, handlers: Handlers, taken: TakeConnection = closeHandle) {
    this.#far = far;
    const port: Port = {
      postMessage: (message) => this.#send(message),
      on: (_event, listener) =>
        far.on("message", (message, handle) => {
          if (isConnection(message)) {
            // One whose client has gone meanwhile comes without a handle.
            if (handle !== undefined) taken(handle as ListeningHandle, message.connection, message.to);
          } else if (!isSocket(message)) listener(message as Parameters<typeof listener>[0]);
          else if (handle !== undefined) this.#sockets.set(message.socket, handle as ListeningHandle);
        }),
    };
    this.channel = new Channel(port, handlers);
  }

  /** Sends a socket; what is sent after it comes after it. */
  give(key: string, handle: ListeningHandle): void {
    this.#send({ socket: key } satisfies SocketMessage, handle);
  }

  /** Hands a connection over to the process `to`, of which this has been read: here it is gone. */
  pass(socket: Socket, head: Uint8Array, to: number): void {
    const { _handle: handle } = socket as unknown as { _handle: (ListeningHandle & { readStop?(): void }) | null };
    if (handle === null) return;
    handle.readStop?.();
    // The other end has a descriptor of its own by then.
    this.passHandle(handle, head, to, () => socket.destroy());
  }

  passHandle(handle: ListeningHandle, head: Uint8Array, to: number, sent: Sent): void {
    this.#send({ connection: head, to } satisfies ConnectionMessage, handle, sent);
  }

  /** A socket that has come; undefined where none has. */
  take(key: string): ListeningHandle | undefined {
    const handle = this.#sockets.get(key);
    this.#sockets.delete(key);
    return handle;
  }

  /** A message to a process that has gone is lost; who waits for its answer hears of the end by `channel.end`. */
  #send(message: unknown, handle?: ListeningHandle, sent: Sent = () => undefined): void {
    if (this.#far.connected) this.#far.send?.(message, handle, undefined, sent);
    else sent(new Error("the process has gone"));
  }
}

export function closeHandle(handle: ListeningHandle): void {
  (handle as { close?(): void }).close?.();
}

function isConnection(message: unknown): message is ConnectionMessage {
  return typeof message === "object" && message !== null && "connection" in message;
}

function isSocket(message: unknown): message is SocketMessage {
  return typeof message === "object" && message !== null && "socket" in message;
}
