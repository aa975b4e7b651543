/**
 * The worker's end of the connection that carries its requests. The module gets Node's own messages
 * for each of them, over a connection in memory.
 */
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { Socket } from "node:net";
import { ServerResponse } from "../util/node_http.ts";
import { type Peer, peerNames } from "./inner_request.ts";
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
const MAX_KNOWN_PEERS = 1000;

/** Serves a request. `facts`: what else the host reports about it, as JSON; "" for nothing. */
export type ServeRelayed = (request: RelayedMessage, response: ServerResponse, id: string, facts: string) => void;

export class ServedRequests {
  readonly #frames: FrameSocket;
  readonly #token: string;
  readonly #serve: ServeRelayed;
  /** By the number of the request. The host uses numbers again. */
  readonly #sockets: (RelayedSocket | undefined)[] = [];
  /** The ends of clients' connections, by their JSON: most requests come from few clients. */
  readonly #peers = new Map<string, Peer>();
  #isAdmitted = false;

  /** `first`: the bytes that have been read from the connection. */
  constructor(socket: Socket, first: Buffer, token: string, serve: ServeRelayed) {
    this.#token = token;
    this.#serve = serve;
    this.#frames = new FrameSocket(socket, this);
    this.#frames.receive(first);
  }

  data(id: number, piece: Buffer): void {
    this.#sockets[id]?.message.give(piece);
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
    const socket = this.#sockets[id];
    if (kind === frameKinds.end) socket?.received(splitLines(head));
    else if (kind === frameKinds.credit) socket?.credited(Number(head));
    else if (kind === frameKinds.half) socket?.endReading();
    else if (kind === frameKinds.abort) socket?.destroy();
  }

  closed(): void {
    for (const socket of this.#sockets) socket?.destroy();
  }

  #begin({ id, isLast, head, body }: Frame): void {
    const lines = splitLines(head);
    const [method = "", url = "", peer = "", requestId = "", facts = ""] = lines.splice(0, 5);
    const over = () => {
      this.#sockets[id] = undefined;
    };
    const socket = new RelayedSocket(this.#frames, id, { peer: this.#peerOf(peer), isStreamed: !isLast, over });
    this.#sockets[id] = socket;
    const request = new RelayedMessage(socket, lines, (bytes) => socket.consumed(bytes));
    request.method = method;
    request.url = url;
    const response = new RelayedResponse(request, socket);
    socket.message = request;
    if (isLast) {
      if (body.length > 0) request.give(body);
      request.finish([]);
    }
    response.once("finish", () => {
      socket.finished();
      // Node's own server drops a body that nobody reads, too.
      if (!request.isRead && request.readableFlowing === null) request.resume();
      response.detachSocket(socket);
      process.nextTick(() => response.close());
    });
    this.#serve(request, response, requestId, facts);
  }

  #peerOf(text: string): Peer {
    let peer = this.#peers.get(text);
    if (peer === undefined) {
      peer = JSON.parse(text) as Peer;
      if (this.#peers.size >= MAX_KNOWN_PEERS) this.#peers.clear();
      this.#peers.set(text, peer);
    }
    return peer;
  }
}

/** Node's response, without chunks: the frames show where the body ends. */
class RelayedResponse extends ServerResponse {
  readonly #socket: RelayedSocket;
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
          return !this.writableEnded && this.#socket.writableNeedDrain;
        },
        configurable: true,
      },
    });
  }

  constructor(request: RelayedMessage, socket: RelayedSocket) {
    super(request);
    // The host writes the date.
    this.sendDate = false;
    this.#socket = socket;
    this.assignSocket(socket);
    socket.on("drain", () => this.emit("drain"));
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
    this.#socket.trailers = entries.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, String(one)]));
  }

  /** The response is complete, and its connection has gone on. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.destroyed = true;
    this.emit("close");
  }
}

const ignore = () => undefined;

interface RelayedSocketOptions {
  readonly peer: Peer;
  /** Whether the body of the request comes in pieces. */
  readonly isStreamed: boolean;
  /** Called when nothing more is sent or received. */
  over(): void;
}

/**
 * The connection of one request. It shows the addresses of the client's connection, and sends what
 * Node's response writes in frames.
 */
class RelayedSocket extends Socket {
  message!: RelayedMessage;
  /** A flat list. */
  trailers: readonly string[] = [];
  readonly #frames: FrameSocket;
  readonly #id: number;
  readonly #peer: Peer;
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

  constructor(frames: FrameSocket, id: number, { peer, isStreamed, over }: RelayedSocketOptions) {
    super({ allowHalfOpen: true });
    this.#frames = frames;
    this.#id = id;
    this.#peer = peer;
    this.#isStreamed = isStreamed;
    this.#isReceived = !isStreamed;
    this.#over = over;
    // The error of a connection reaches the messages. Without a listener it would be uncaught.
    this.on("error", ignore);
  }

  /** The reader of the request has taken bytes. */
  consumed(bytes: number): void {
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
    if (this.#unsentBytes > 0) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }

  endReading(): void {
    this.push(null);
    this.resume();
  }

  /** The response is complete. */
  finished(): void {
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

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    this.#take(chunk, encoding);
    this.#schedule(done);
  }

  override _writev(chunks: { chunk: Buffer | string; encoding: BufferEncoding }[], done: Done): void {
    for (const { chunk, encoding } of chunks) this.#take(chunk, encoding);
    this.#schedule(done);
  }

  override _final(done: Done): void {
    done();
    this.#flush();
    this.destroy();
  }

  override _destroy(error: Error | null, done: Done): void {
    super._destroy(error, done);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(error ?? new Error("The connection is closed"));
    if (!this.#isFinal) {
      this.#leave(frameKinds.abort);
      this.message.destroy(Object.assign(new Error("aborted"), { code: "ECONNRESET" }));
    } else if (this.#isStreamed) this.#leave(frameKinds.closed);
  }

  /** Sends the last frame of the request, if it needs one. */
  #leave(kind: typeof frameKinds.abort | typeof frameKinds.closed | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (kind !== undefined) this.#frames.send(kind, this.#id);
    this.#over();
  }

  #take(chunk: Buffer | string, encoding: BufferEncoding): void {
    if (this.timeout) this.setTimeout(this.timeout);
    let rest = chunk;
    // Node.js writes each head as text, and in one piece.
    while (this.#head === undefined && rest.length > 0) {
      const end = typeof rest === "string" && rest.startsWith("HTTP/1.1 ") ? rest.indexOf(END_OF_HEAD) : -1;
      if (end < 0) {
        this.destroy(new Error("Only Node's own response can be written to the connection of a relayed request"));
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

  #schedule(done: Done): void {
    if (this.#unsentBytes <= this.#credit) done();
    else this.#waiting = done;
    if (this.#isPending) return;
    this.#isPending = true;
    this.#frames.beforeFlush(() => {
      this.#isPending = false;
      this.#flush();
    });
  }

  /** Sends the head, and as much of the body as the host takes. */
  #flush(): void {
    if (this.#head === undefined || this.#isOver) return;
    if (!this.#isHeadSent) this.#sendHead(false);
    while (this.#credit > 0) {
      const next = this.#unsent.shift();
      if (next === undefined) return;
      const part = next.length > this.#credit ? next.subarray(0, this.#credit) : next;
      if (part.length < next.length) this.#unsent.unshift(next.subarray(part.length));
      this.#sent(part.length);
      this.#frames.send(frameKinds.data, this.#id, false, "", part);
    }
  }

  #sendHead(isLast: boolean): void {
    this.#isHeadSent = true;
    const isWhole = this.#unsentBytes <= Math.min(WHOLE_BYTES, this.#credit);
    const pieces = isWhole ? this.#unsent.splice(0) : [];
    const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    if (isWhole) this.#sent(this.#unsentBytes);
    this.#frames.send(frameKinds.response, this.#id, isLast, this.#head, body);
  }

  #sent(bytes: number): void {
    this.#credit -= bytes;
    this.#unsentBytes -= bytes;
  }
}
