import type { Socket } from "node:net";
import type { RawData, WebSocket } from "ws";
import type { WebSocketClosed, WebSocketConnection, WebSocketMessage } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import type { ProgressWatch, Watched } from "../connection/progress.ts";
import { bytesTaken } from "../patches/node/bytes_taken.ts";
import type { WebsocketLimits } from "../settings.ts";
import { frameOf } from "./outgoing_frame.ts";
import { WebsocketScheduler } from "./scheduler.ts";

/** Reading from the client pauses when this many messages, or bytes, wait for the handler. */
const MAX_WAITING_MESSAGES = 64;
const MAX_WAITING_BYTES = 64 * 1024;

/** `send` resolves at once while fewer bytes than this wait to be sent. */
const MAX_SENT_AHEAD = 64 * 1024;

/** Memory of a waiting message in addition to its payload, in bytes. */
const MESSAGE_COST = 700;

/**
 * Pings in a row that a reading client may leave unanswered: the ping waits behind data that the
 * kernel still buffers for the client, which may be megabytes.
 */
const MAX_LATE_PINGS = 8;

/**
 * Bytes in addition to one message that one compressed chunk may expand to. This is more than may
 * otherwise wait.
 */
const MAX_UNPACKED_BYTES = 16 * 1024 * 1024;

/**
 * Bytes that may wait for the handlers of all connections together. A connection that adds to more
 * than that, and has a large part of it, is cut.
 */
const MAX_ALL_WAITING_BYTES = 256 * 1024 * 1024;

/** Shared by all connections of this thread, because they share its event loop and its memory. */
const scheduler = new WebsocketScheduler();
let allWaiting = 0;

/** Close codes by error of `ws` (Z_ is decompression); any other protocol error is 1002. */
const faultCodes: readonly [name: RegExp, code: number][] = [
  [/^WS_ERR_UNSUPPORTED_(MESSAGE|DATA_PAYLOAD)_LENGTH$/, 1009],
  [/^WS_ERR_TOO_MANY_BUFFERED_PARTS$/, 1008],
  [/^WS_ERR_INVALID_UTF8$|^Z_/, 1007],
  [/^WS_ERR_/, 1002],
];

/**
 * A websocket as its module sees it. Slows down the faster side, and cuts a client that has left.
 */
export class Connection implements WebSocketConnection {
  readonly closed: Promise<WebSocketClosed>;
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  /** Whether messages go through the library, which may be compressing others. */
  readonly #isCompressed: boolean;
  readonly #limits: WebsocketLimits;
  readonly #watch: ProgressWatch;
  /** Messages that were received and not yet taken by the handler. */
  #messages: WebSocketMessage[] = [];
  #bytes = 0;
  /** Calls of `receive` that wait. */
  #readers: ((message: WebSocketMessage | undefined) => void)[] = [];
  #reading: "not yet" | "wanted" | "refused" = "not yet";
  /** Set once the connection is over. */
  #end: WebSocketClosed | undefined;
  /** Why this side cut the connection. */
  #cut: string | undefined;
  /** The client's protocol error, with the close code sent. */
  #fault: WebSocketClosed | undefined;
  #sent = 0;
  /** Messages handed over to be sent, and how many of them have left. */
  #sentMessages = 0;
  #leftMessages = 0;
  #sending: Watched | undefined;
  /** Bytes that had arrived when the last ping was sent; undefined when reading was paused then. */
  #readAtPing: number | undefined;
  /**
   * Bytes the client had taken when the last ping was queued behind other data; undefined if none
   * was ahead of it.
   */
  #takenAtPing: number | undefined;
  #patience = 0;
  readonly #pinging: NodeJS.Timeout | undefined;

  constructor(ws: WebSocket, socket: Socket, limits: WebsocketLimits, watch: ProgressWatch) {
    this.#ws = ws;
    this.#socket = socket;
    this.#isCompressed = ws.extensions !== "";
    this.#limits = limits;
    this.#watch = watch;
    const { promise, resolve } = Promise.withResolvers<WebSocketClosed>();
    this.closed = promise;
    if (limits.pingInterval > 0) {
      this.#pinging = setInterval(() => this.#ping(), limits.pingInterval * 1000).unref();
    }
    ws.on("message", (data, isBinary) => this.#arrived(data, isBinary));
    // On a protocol error ws sends the close code and stops reading; its "close" event does not
    // contain the code.
    ws.on("error", (error: NodeJS.ErrnoException) => {
      const [, code] = faultCodes.find(([name]) => name.test(error.code ?? "")) ?? [];
      if (code !== undefined) this.#fault ??= { code, reason: error.message };
    });
    ws.on("close", (code, reason) => resolve(this.#over(code, reason.toString())));
    scheduler.share(socket);
    // This listener runs before ws reads the rest of the data.
    socket.prependListener("close", () => {
      if (this.#isFull) socket.read(socket.readableLength);
    });
    ws.on("pong", () => {
      this.#patience = 0;
    });
    // The socket was paused when it was handed over.
    ws.resume();
  }

  get protocol(): string {
    return this.#ws.protocol;
  }

  get open(): boolean {
    return this.#ws.readyState === this.#ws.OPEN;
  }

  send(message: string | Uint8Array): Promise<void> {
    if (typeof message !== "string" && !(message instanceof Uint8Array)) {
      throw new TypeError(`A websocket sends strings and bytes, not a ${typeof message}`);
    }
    if (this.#unsent > this.#limits.maxUnsent) this.cut("the client reads too slowly");
    if (!this.open) return quietly(Promise.reject(this.#gone()));
    this.#sent += message.length;
    const position = ++this.#sentMessages;
    let settle: ((error: Error | null | undefined) => void) | undefined;
    this.#write(message, (error) => {
      this.#leftMessages = Math.max(this.#leftMessages, position);
      settle?.(error);
      if (this.#ws.bufferedAmount === 0) this.#unwatch();
    });
    // The callback runs later, even for data that the kernel takes at once.
    if (this.#ws.bufferedAmount === 0) this.#leftMessages = position;
    if (this.#unsent <= MAX_SENT_AHEAD) return sent;
    this.#watchSending();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    settle = (error) => (error ? reject(this.#gone()) : resolve());
    return quietly(promise);
  }

  #write(message: string | Uint8Array, left: (error: Error | null | undefined) => void): void {
    const frame = this.#isCompressed ? undefined : frameOf(message);
    if (frame === undefined) this.#ws.send(message, left);
    else this.#socket.write(frame, left);
  }

  receive(): Promise<WebSocketMessage | undefined> {
    return this.#take((message) => message);
  }

  [Symbol.asyncIterator](): AsyncIterator<WebSocketMessage> {
    return { next: () => this.#take(resultOf) };
  }

  /**
   * Takes the next message, converted by `form`. Creates only one promise for each message, because
   * connections may have very many messages.
   */
  #take<T>(form: (message: WebSocketMessage | undefined) => T): Promise<T> {
    if (this.#reading === "not yet") this.#reading = "wanted";
    const message = this.#messages.shift();
    if (message === undefined) {
      if (this.#end !== undefined) return Promise.resolve(form(undefined));
      return new Promise((resolve) => void this.#readers.push((next) => resolve(form(next))));
    }
    this.#count(-message.length);
    this.#hold();
    return scheduler.isSpentAtMessage() ? scheduler.next().then(() => form(message)) : Promise.resolve(form(message));
  }

  close(code = 1000, reason = ""): Promise<WebSocketClosed> {
    this.#ws.close(code, reason);
    // The client's close frame arrives after the data it sent before.
    this.#refuse();
    return this.closed;
  }

  /** Called when the handler has ended. If it never began to read, nobody will. */
  settle(): void {
    if (this.#reading === "not yet") this.#refuse();
  }

  /** Ends the connection at once, with a reason for the module. */
  cut(reason: string): void {
    this.#cut ??= reason;
    this.#ws.terminate();
  }

  /** Memory of what waits to be sent, in bytes. */
  get #unsent(): number {
    return this.#ws.bufferedAmount + (this.#sentMessages - this.#leftMessages) * MESSAGE_COST;
  }

  #arrived(data: RawData, isBinary: boolean): void {
    if (this.#reading === "refused") return;
    const message = isBinary ? (data as Buffer) : data.toString();
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader(message);
      return;
    }
    // A client that has left cannot be paused, and thousands of messages may still be unpacked from
    // one piece.
    if (this.#isFull && this.#socket.destroyed) return;
    this.#messages.push(typeof message === "string" ? message : ownMemory(message));
    this.#count(message.length);
    const isTooMuch = allWaiting > MAX_ALL_WAITING_BYTES && this.#bytes > MAX_WAITING_BYTES;
    if (isTooMuch || this.#bytes > MAX_UNPACKED_BYTES + this.#limits.maxMessage) {
      this.cut("its messages unpack to too many bytes");
      this.#refuse();
    } else this.#hold();
  }

  /** Pauses or resumes reading, depending on the room for messages. */
  #hold(): void {
    if (this.#isFull === this.#ws.isPaused) return;
    if (this.#isFull) this.#ws.pause();
    else this.#ws.resume();
  }

  get #isFull(): boolean {
    return this.#messages.length >= MAX_WAITING_MESSAGES || this.#bytes >= MAX_WAITING_BYTES;
  }

  #refuse(): void {
    this.#reading = "refused";
    this.#messages = [];
    this.#count(-this.#bytes);
    this.#hold();
  }

  /**
   * Counts waiting bytes. The total leaves out a connection that has ended, because nobody may ever
   * take its messages.
   */
  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#end === undefined) allWaiting += bytes;
  }

  #ping(): void {
    const taken = this.#taken();
    if (this.#takenAtPing !== undefined && taken > this.#takenAtPing) this.#patience = MAX_LATE_PINGS;
    else if (this.#readAtPing === this.#socket.bytesRead && this.#patience-- <= 0) {
      this.cut(`the client was silent for ${this.#limits.pingInterval} seconds after a ping`);
      return;
    }
    // While reading is paused, a pong would not be seen.
    this.#readAtPing = this.#ws.isPaused ? undefined : this.#socket.bytesRead;
    // With nothing queued ahead of it, the kernel takes the ping whether or not the client is still
    // connected.
    this.#takenAtPing = this.#ws.bufferedAmount > 0 ? taken : undefined;
    if (this.open) this.#ws.ping();
  }

  #watchSending(): void {
    if (this.#sending !== undefined) return;
    this.#sending = this.#watch.add({
      moved: () => this.#taken(),
      waiting: () => true,
      expired: () => this.cut("the client does not read"),
    });
  }

  #taken(): number {
    return bytesTaken(this.#socket) ?? this.#sent - this.#ws.bufferedAmount;
  }

  #unwatch(): void {
    this.#watch.delete(this.#sending);
    this.#sending = undefined;
  }

  #over(code: number, reason: string): WebSocketClosed {
    clearInterval(this.#pinging);
    this.#unwatch();
    const fault = this.#cut === undefined ? this.#fault : undefined;
    allWaiting -= this.#bytes;
    this.#end = fault ?? { code, reason: this.#cut ?? reason };
    for (const reader of this.#readers.splice(0)) reader(undefined);
    return this.#end;
  }

  #gone(): ModhostError {
    const ended = this.#end && `it ended with ${this.#end.code} ${this.#end.reason}`.trim();
    return new ModhostError("WEBSOCKET_CLOSED", { reason: ended ?? this.#cut ?? "it is being closed" });
  }
}

const sent = Promise.resolve();

const resultOf = (value: WebSocketMessage | undefined): IteratorResult<WebSocketMessage, undefined> =>
  value === undefined ? { done: true, value } : { done: false, value };

/**
 * Ignores the rejection when nobody awaits the promise. A client that leaves must not cause
 * unhandled rejections.
 */
function quietly(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}

/**
 * Copies a short message out of a large buffer: a message of one byte may otherwise keep the 16 KB
 * that it was unpacked into, or the 64 KB that it was read with.
 */
function ownMemory(message: Buffer): Buffer {
  return message.length * 2 < message.buffer.byteLength ? Buffer.from(message) : message;
}
