/**
 * The worker's end of the connection that carries its requests. The module gets Node's own messages
 * for each of them, over a connection in memory.
 */
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { Socket } from "node:net";
import { ServerResponse } from "../util/node_http.ts";
import { type Peer, peerNames } from "./inner_request.ts";
import { ReadGarbage } from "./read_garbage.ts";
import { RelayedMessage } from "./relayed_message.ts";
import {
  type Frame,
  FrameSocket,
  frameKinds,
  joinLines,
  MAX_HEAD_BYTES,
  MAX_INTERIM,
  splitLines,
  WHOLE_BYTES,
  WINDOW_BYTES,
} from "./request_frames.ts";

type Done = (error?: Error | null) => void;

/**
 * Sent in place of a head that is too large, or that follows too many interim responses. The host
 * refuses it.
 */
const REFUSED_HEAD = "HTTP/1.1 000 ";
const END_OF_HEAD = "\r\n\r\n";
const MAX_KNOWN_CLIENTS = 1000;

/** Serves a request. `facts`: what else the host reports about it, as JSON; "" for nothing. */
export type ServeRelayed = (request: RelayedMessage, response: ServerResponse, id: string, facts: string) => void;

export class ServedRequests {
  readonly #frames: FrameSocket;
  readonly #token: string;
  readonly #serve: ServeRelayed;
  /** By the number of the request. The host uses numbers again. */
  readonly #requests: (ServedRequest | undefined)[] = [];
  /** By the text that the host sends for each connection of a client. */
  readonly #clients = new Map<string, Client>();
  #isAdmitted = false;

  /** `first`: the bytes that have been read from the connection. */
  constructor(socket: Socket, first: Buffer, token: string, serve: ServeRelayed) {
    this.#token = token;
    this.#serve = serve;
    this.#frames = new FrameSocket(socket, this);
    const garbage = new ReadGarbage();
    socket.on("data", (chunk: Buffer) => {
      this.#frames.receive(chunk);
      garbage.add(chunk.length);
    });
    this.#frames.receive(first);
  }

  data(id: number, piece: Buffer): void {
    this.#requests[id]?.message.give(piece);
  }

  frame(frame: Frame): void {
    if (!this.#isAdmitted) {
      this.#isAdmitted = frame.kind === frameKinds.hello && frame.head === this.#token;
      if (!this.#isAdmitted) this.#frames.destroy();
      return;
    }
    const { kind, id, head } = frame;
    if (kind === frameKinds.request) {
      this.#begin(frame);
      return;
    }
    const request = this.#requests[id];
    if (kind === frameKinds.end) request?.received(splitLines(head));
    else if (kind === frameKinds.credit) request?.credited(Number(head));
    else if (kind === frameKinds.half) request?.socket.endReading();
    else if (kind === frameKinds.abort) request?.socket.destroy();
  }

  closed(): void {
    for (const request of this.#requests) request?.socket.destroy();
  }

  #begin({ id, isLast, head, body }: Frame): void {
    const lines = splitLines(head);
    const [method = "", url = "", peer = "", requestId = "", facts = ""] = lines.splice(0, 5);
    const client = this.#clientOf(peer);
    const socket = client.idle ?? new RelayedSocket(client.peer);
    client.idle = undefined;
    const served = new ServedRequest(this.#frames, id, socket, lines, !isLast, () => {
      this.#requests[id] = undefined;
      if (socket.isReusable) client.idle = socket;
    });
    this.#requests[id] = served;
    const { message } = served;
    message.method = method;
    message.url = url;
    if (isLast) {
      if (body.length > 0) message.give(body);
      message.finish([]);
    }
    this.#serve(message, served.response, requestId, facts);
  }

  #clientOf(text: string): Client {
    let client = this.#clients.get(text);
    if (client === undefined) {
      client = { peer: JSON.parse(text) as Peer, idle: undefined };
      if (this.#clients.size >= MAX_KNOWN_CLIENTS) this.#clients.clear();
      this.#clients.set(text, client);
    }
    return client;
  }
}

/** A connection of a client to the host. */
interface Client {
  readonly peer: Peer;
  /** The connection in memory that its next request uses again. */
  idle: RelayedSocket | undefined;
}

/** Node's response, without chunks: the frames show where the body ends. */
class RelayedResponse extends ServerResponse {
  readonly #served: ServedRequest;
  #isClosed = false;

  static {
    // Node's own accessors read fields that only its server sets. TypeScript does not allow
    // accessors for members that are declared as fields.
    Object.defineProperties(RelayedResponse.prototype, {
      closed: {
        get(this: RelayedResponse) {
          return this.#isClosed;
        },
        configurable: true,
      },
      writableNeedDrain: {
        get(this: RelayedResponse) {
          return !this.writableEnded && this.#served.socket.writableNeedDrain;
        },
        configurable: true,
      },
    });
  }

  constructor(request: RelayedMessage, served: ServedRequest) {
    super(request);
    // The host writes the date.
    this.sendDate = false;
    this.#served = served;
    this.assignSocket(served.socket);
  }

  override writeHead(status: number, ...values: never[]): this {
    super.writeHead(status, ...values);
    this.chunkedEncoding = false;
    return this;
  }

  override addTrailers(trailers: OutgoingHttpHeaders | readonly [string, string][]): void {
    super.addTrailers(trailers);
    const entries: readonly (readonly [string, OutgoingHttpHeader | undefined])[] = Array.isArray(trailers)
      ? trailers
      : Object.entries(trailers);
    this.#served.trailers = entries.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, String(one)]));
  }

  /** The response is complete, and its connection has gone on. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.destroyed = true;
    this.emit("close");
  }
}

/** A request, until both sides are done with it. It sends what Node's response writes in frames. */
class ServedRequest {
  readonly socket: RelayedSocket;
  readonly message: RelayedMessage;
  readonly response: RelayedResponse;
  /** A flat list. */
  trailers: readonly string[] = [];
  readonly #frames: FrameSocket;
  readonly #id: number;
  /** Whether the body of the request comes in pieces. */
  readonly #isStreamed: boolean;
  readonly #over: () => void;
  /** The head of the response, once Node.js has written it. */
  #head: string | undefined;
  #isHeadSent = false;
  #interims = 0;
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #credit = WINDOW_BYTES;
  /** The callback of a write that waits for credit. */
  #waiting: Done | undefined;
  #isPending = false;
  /** The whole request has arrived. */
  #isReceived: boolean;
  /** The end of the response has been sent. */
  #isFinal = false;
  #isOver = false;

  /** `over` is called when nothing more is sent or received. */
  constructor(
    frames: FrameSocket,
    id: number,
    socket: RelayedSocket,
    fields: string[],
    isStreamed: boolean,
    over: () => void,
  ) {
    this.#frames = frames;
    this.#id = id;
    this.socket = socket;
    this.#isStreamed = isStreamed;
    this.#isReceived = !isStreamed;
    this.#over = over;
    socket.request = this;
    this.message = new RelayedMessage(socket, fields, (bytes) => this.#consumed(bytes));
    this.response = new RelayedResponse(this.message, this);
    this.response.once("finish", () => this.#finished());
  }

  /** The reader of the request has taken bytes. */
  #consumed(bytes: number): void {
    if (!this.#isReceived && !this.#isOver) this.#frames.send(frameKinds.credit, this.#id, true, String(bytes));
  }

  /** The body of the request is complete. */
  received(trailers: string[]): void {
    this.#isReceived = true;
    this.message.finish(trailers);
    if (this.#isFinal) this.#leave(frameKinds.closed);
  }

  /** The host takes more of the response. */
  credited(bytes: number): void {
    this.#credit += bytes;
    this.#flush();
    if (this.#unsentBytes === 0) this.#proceed();
  }

  /** The response is complete. */
  #finished(): void {
    const { message, response, socket } = this;
    // Node's own server drops a body that nobody reads, too.
    if (!message.isRead && message.readableFlowing === null) message.resume();
    response.detachSocket(socket);
    process.nextTick(() => response.close());
    if (this.#isFinal || this.#isOver) return;
    this.#isFinal = true;
    if (!this.#isHeadSent && this.#unsentBytes <= WHOLE_BYTES && this.trailers.length === 0) this.#sendHead(true);
    else {
      this.#flush();
      this.#frames.send(frameKinds.end, this.#id, true, joinLines(this.trailers));
    }
    if (!this.#isStreamed) this.#leave(undefined);
    else if (this.#isReceived) this.#leave(frameKinds.closed);
  }

  /** Writes to the connection. */
  write(chunks: readonly Written[], done: Done): void {
    for (const { chunk, encoding } of chunks) this.#take(chunk, encoding);
    if (this.#unsentBytes <= this.#credit) done();
    else this.#waiting = done;
    if (this.#isPending) return;
    this.#isPending = true;
    this.#frames.beforeFlush(() => {
      this.#isPending = false;
      this.#flush();
    });
  }

  /** The handler ends the connection. */
  end(): void {
    this.#flush();
    this.socket.destroy();
  }

  /** The connection is destroyed. */
  destroyed(error: Error | null): void {
    this.#proceed(error ?? new Error("The connection is closed"));
    if (!this.#isFinal) {
      this.#leave(frameKinds.abort);
      this.message.destroy(Object.assign(new Error("aborted"), { code: "ECONNRESET" }));
    } else if (this.#isStreamed) this.#leave(frameKinds.closed);
  }

  /** Calls back the write that waits. */
  #proceed(error?: Error): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(error);
  }

  /** Sends the last frame of the request, if it needs one. */
  #leave(kind: typeof frameKinds.abort | typeof frameKinds.closed | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (kind !== undefined) this.#frames.send(kind, this.#id);
    if (this.socket.request === this) this.socket.request = undefined;
    this.#over();
  }

  #take(chunk: Buffer | string, encoding: BufferEncoding): void {
    let rest = chunk;
    // Node.js writes each head as text, and in one piece.
    while (this.#head === undefined && rest.length > 0) {
      const end = typeof rest === "string" && rest.startsWith("HTTP/1.1 ") ? rest.indexOf(END_OF_HEAD) : -1;
      if (end < 0) {
        this.socket.destroy(
          new Error("Only Node's own response can be written to the connection of a relayed request"),
        );
        return;
      }
      const head = rest.slice(0, end) as string;
      rest = rest.slice(end + END_OF_HEAD.length);
      const isInterim = head.startsWith("HTTP/1.1 1");
      if (isInterim) this.#interims += 1;
      if (head.length > MAX_HEAD_BYTES || this.#interims > MAX_INTERIM) this.#head = REFUSED_HEAD;
      else if (isInterim) this.#frames.send(frameKinds.interim, this.#id, true, head);
      else this.#head = head;
    }
    if (rest.length === 0) return;
    const piece = typeof rest === "string" ? Buffer.from(rest, encoding) : rest;
    this.#unsent.push(piece);
    this.#unsentBytes += piece.length;
  }

  /** Sends the head, and as much of the body as the host takes. */
  #flush(): void {
    if (this.#head === undefined || this.#isOver) return;
    if (!this.#isHeadSent) this.#sendHead(false);
    const bytes = Math.min(this.#credit, this.#unsentBytes);
    if (bytes > 0) this.#frames.sendPieces(this.#id, this.#taken(bytes), bytes);
  }

  #sendHead(isLast: boolean): void {
    this.#isHeadSent = true;
    const isWhole = this.#unsentBytes <= Math.min(WHOLE_BYTES, this.#credit);
    const pieces = isWhole ? this.#taken(this.#unsentBytes) : [];
    const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    this.#frames.send(frameKinds.response, this.#id, isLast, this.#head, body);
  }

  /** Removes this number of bytes from the body that is not sent yet. */
  #taken(bytes: number): Buffer[] {
    this.#credit -= bytes;
    this.#unsentBytes -= bytes;
    const pieces: Buffer[] = [];
    for (let left = bytes; left > 0; ) {
      const next = this.#unsent.shift() as Buffer;
      if (next.length > left) this.#unsent.unshift(next.subarray(left));
      pieces.push(next.length > left ? next.subarray(0, left) : next);
      left -= Math.min(left, next.length);
    }
    return pieces;
  }
}

interface Written {
  readonly chunk: Buffer | string;
  readonly encoding: BufferEncoding;
}

const ignore = () => undefined;

/**
 * The connection of the requests of one client, one after the other. It shows the addresses of the
 * client's connection. A new one for each request would be costly: V8 allocates some functions of a
 * stream as if they lived long, and they retain the stream, and with it the request, until the next
 * full garbage collection.
 */
class RelayedSocket extends Socket {
  /** The current request. */
  request: ServedRequest | undefined;
  readonly #peer: Peer;

  static {
    for (const name of peerNames) {
      Object.defineProperty(RelayedSocket.prototype, name, {
        get(this: RelayedSocket) {
          return this.#peer[name];
        },
        configurable: true,
      });
    }
  }

  constructor(peer: Peer) {
    super({ allowHalfOpen: true });
    this.#peer = peer;
    // The error of a connection reaches the messages. Without a listener it would be uncaught.
    this.on("error", ignore);
    this.on("drain", () => this.request?.response.emit("drain"));
  }

  /** Whether another request of the client can use it. */
  get isReusable(): boolean {
    return !this.destroyed && !this.readableEnded && !this.writableEnded && !this.timeout && this.#isBetween;
  }

  get #isBetween(): boolean {
    return this.request === undefined && this.writableLength === 0;
  }

  endReading(): void {
    this.push(null);
    this.resume();
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    this.#send([{ chunk, encoding }], done);
  }

  override _writev(chunks: Written[], done: Done): void {
    this.#send(chunks, done);
  }

  #send(chunks: Written[], done: Done): void {
    if (this.timeout) this.setTimeout(this.timeout);
    if (this.request === undefined) done(new Error("No request is open on this connection"));
    else this.request.write(chunks, done);
  }

  override _final(done: Done): void {
    done();
    if (this.request === undefined) this.destroy();
    else this.request.end();
  }

  override _destroy(error: Error | null, done: Done): void {
    super._destroy(error, done);
    this.request?.destroyed(error);
  }
}
