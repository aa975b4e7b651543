import type { Socket } from "node:net";
import type { RawData, WebSocket } from "ws";
import { ModhostError } from "../errors.ts";
import type { WebSocketClosed, WebSocketConnection, WebSocketMessage } from "../types.ts";
import { bytesTaken, type Flow, type ProgressWatch } from "./progress.ts";
import type { WebsocketLimits } from "./settings.ts";

/** Messages that wait to be taken: with either of these the client is not read from. */
const waitingMessages = 64;
const waitingBytes = 64 * 1024;

/** Bytes that wait to be sent, up to which `send` does not. */
const sentAhead = 64 * 1024;

/** One websocket as its module sees it: holds back the side that is too fast, and cuts a client that is not there. */
export class Connection implements WebSocketConnection {
  readonly closed: Promise<WebSocketClosed>;
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #limits: WebsocketLimits;
  readonly #watch: ProgressWatch;
  /** Messages that have come and were not asked for. */
  #messages: WebSocketMessage[] = [];
  #bytes = 0;
  /** Calls of `receive` that wait. */
  #readers: ((message: WebSocketMessage | undefined) => void)[] = [];
  #reading: "not yet" | "wanted" | "refused" = "not yet";
  /** Set once the connection is over. */
  #end: WebSocketClosed | undefined;
  /** Why this side cut it. */
  #cut: string | undefined;
  #sent = 0;
  #sending: Flow | undefined;
  /** Nothing has come since the last ping, though it could. */
  #silent = false;
  readonly #pinging: NodeJS.Timeout;

  constructor(ws: WebSocket, socket: Socket, limits: WebsocketLimits, watch: ProgressWatch) {
    this.#ws = ws;
    this.#socket = socket;
    this.#limits = limits;
    this.#watch = watch;
    const { promise, resolve } = Promise.withResolvers<WebSocketClosed>();
    this.closed = promise;
    this.#pinging = setInterval(() => this.#ping(), limits.pingInterval * 1000).unref();
    ws.on("message", (data, isBinary) => this.#arrived(data, isBinary));
    // What breaks the protocol is answered by ws; "close" tells the code.
    ws.on("error", () => undefined);
    ws.on("close", (code, reason) => resolve(this.#over(code, reason.toString())));
    socket.on("data", () => {
      this.#silent = false;
    });
    // Node's own reading was stopped at the handover.
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
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Many senders go on without waiting: that the client has left is no fault of theirs.
    promise.catch(() => undefined);
    if (this.#ws.bufferedAmount > this.#limits.maxUnsent) this.cut("the client reads too slowly");
    if (!this.open) {
      reject(this.#gone());
      return promise;
    }
    this.#sent += message.length;
    this.#ws.send(message, (error) => {
      if (error) reject(this.#gone());
      else resolve();
      if (this.#ws.bufferedAmount === 0) this.#unwatch();
    });
    if (this.#ws.bufferedAmount <= sentAhead) resolve();
    else this.#watchSending();
    return promise;
  }

  receive(): Promise<WebSocketMessage | undefined> {
    if (this.#reading === "not yet") this.#reading = "wanted";
    const message = this.#messages.shift();
    if (message === undefined) {
      if (this.#end !== undefined) return Promise.resolve(undefined);
      return new Promise((resolve) => void this.#readers.push(resolve));
    }
    this.#bytes -= message.length;
    this.#hold();
    return Promise.resolve(message);
  }

  [Symbol.asyncIterator](): AsyncIterator<WebSocketMessage> {
    const next = async (): Promise<IteratorResult<WebSocketMessage>> => {
      const value = await this.receive();
      return value === undefined ? { done: true, value } : { done: false, value };
    };
    return { next };
  }

  close(code = 1000, reason = ""): Promise<WebSocketClosed> {
    this.#ws.close(code, reason);
    // The client's agreement comes behind what it has sent before.
    this.#refuse();
    return this.closed;
  }

  /** The handler has ended: nobody will read who has not begun to. */
  settle(): void {
    if (this.#reading === "not yet") this.#refuse();
  }

  /** Ends the connection at once; the module reads the reason. */
  cut(reason: string): void {
    this.#cut ??= reason;
    this.#ws.terminate();
  }

  #arrived(data: RawData, isBinary: boolean): void {
    if (this.#reading === "refused") return;
    const message = isBinary ? (data as Buffer) : data.toString();
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader(message);
      return;
    }
    this.#messages.push(message);
    this.#bytes += message.length;
    this.#hold();
  }

  /** Reads from the client, or does not, as there is room. */
  #hold(): void {
    const isFull = this.#messages.length >= waitingMessages || this.#bytes >= waitingBytes;
    if (isFull === this.#ws.isPaused) return;
    if (isFull) this.#ws.pause();
    else this.#ws.resume();
  }

  #refuse(): void {
    this.#reading = "refused";
    this.#messages = [];
    this.#bytes = 0;
    this.#hold();
  }

  #ping(): void {
    if (this.#silent) {
      this.cut(`the client was silent for ${this.#limits.pingInterval} seconds after a ping`);
      return;
    }
    // While nothing is read, an answer would not be seen.
    this.#silent = !this.#ws.isPaused;
    if (this.open) this.#ws.ping();
  }

  #watchSending(): void {
    if (this.#sending !== undefined) return;
    const moved = () => bytesTaken(this.#socket) ?? this.#sent - this.#ws.bufferedAmount;
    this.#sending = { moved, waiting: () => true, expired: () => this.cut("the client does not read") };
    this.#watch.add(this.#sending);
  }

  #unwatch(): void {
    if (this.#sending !== undefined) this.#watch.delete(this.#sending);
    this.#sending = undefined;
  }

  #over(code: number, reason: string): WebSocketClosed {
    clearInterval(this.#pinging);
    this.#unwatch();
    this.#end = { code, reason: this.#cut ?? reason };
    for (const reader of this.#readers.splice(0)) reader(undefined);
    return this.#end;
  }

  #gone(): ModhostError {
    const ended = this.#end && `it ended with ${this.#end.code} ${this.#end.reason}`.trim();
    return new ModhostError("WEBSOCKET_CLOSED", { reason: ended ?? this.#cut ?? "it is being closed" });
  }
}
