/**
 * The host's end of the connection that carries the requests for one worker. It checks every frame,
 * because the worker may be hostile.
 */
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { isFieldValue, isToken } from "../util/header_fields.ts";
import { asHost } from "../util/usage.ts";
import { RelayFault } from "./fault.ts";
import { FrameFault } from "./frames.ts";
import type { InnerAddress } from "./inner_request.ts";
import { RelayedMessage } from "./relayed_message.ts";
import {
  type Frame,
  type FrameKind,
  FrameSocket,
  frameKinds,
  joinLines,
  MAX_HEAD_BYTES,
  MAX_INTERIM,
  splitLines,
  WHOLE_BYTES,
  WINDOW_BYTES,
} from "./request_frames.ts";

/** The lowest status of a final response (RFC 9110, 15). */
const MIN_STATUS = 200;

const LENGTH = "content-length";

const statusLine = /^HTTP\/1\.1 (\d{3}) ([^\r\n]*)$/;

/** Bytes of a body that are sent at least, unless it has fewer. */
const LEAST_BYTES = 16 * 1024;

export interface LinkedRequest {
  /** The lines of the head, as `ServedRequests` reads them. */
  readonly head: readonly string[];
  /** The body, or its pieces as they arrive; undefined for a request without one. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Returns the trailers, as a flat list. Called after the body has been read. */
  trailers?(): readonly string[];
  /** Called for each interim response, such as 103. */
  informed?(status: number, rawHeaders: readonly string[]): void;
}

export interface LinkedResponse {
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly rawHeaders: string[];
  /** The body, if it has arrived in one piece, or the message from which it is read. */
  readonly body: Buffer | IncomingMessage;
}

/** Sends requests to a worker over one connection, which the first request opens. */
export class RequestLink {
  readonly #address: InnerAddress;
  readonly #malformed: (reason: string) => void;
  #connection: LinkConnection | undefined;

  /** `malformed` is called with the reason when the worker sends what no correct worker sends. */
  constructor(address: InnerAddress, malformed: (reason: string) => void) {
    this.#address = address;
    this.#malformed = malformed;
  }

  send(request: LinkedRequest): LinkedCall {
    if (this.#connection === undefined || this.#connection.isClosed) {
      this.#connection = new LinkConnection(this.#address, this.#malformed);
    }
    return this.#connection.send(request);
  }

  close(): void {
    this.#connection?.close();
  }
}

class LinkConnection {
  readonly #frames: FrameSocket;
  readonly #malformed: (reason: string) => void;
  /**
   * The calls by their number, which a later call uses again. A `Map` with ever new keys would link
   * its old tables, and with them all calls until the next full garbage collection.
   */
  readonly #calls: (LinkedCall | undefined)[] = [];
  readonly #free: number[] = [];
  #isOpen = false;
  isClosed = false;

  constructor({ path, token }: InnerAddress, malformed: (reason: string) => void) {
    this.#malformed = malformed;
    // The connection belongs to the host, and not to the module whose request opens it.
    const socket = asHost(() => connect(path));
    socket.once("connect", () => {
      this.#isOpen = true;
    });
    const limits = { maxBytes: MAX_HEAD_BYTES + WHOLE_BYTES, isPaced: true };
    this.#frames = asHost(() => new FrameSocket(socket, this, limits));
    this.#frames.send(frameKinds.hello, 0, true, token);
  }

  send(request: LinkedRequest): LinkedCall {
    const id = this.#free.pop() ?? this.#calls.length;
    const call = new LinkedCall(this.#frames, id, request);
    this.#calls[id] = call;
    call.begin();
    return call;
  }

  close(): void {
    this.#frames.destroy();
  }

  data(id: number, piece: Buffer): void {
    this.#callOf(id).data(piece);
  }

  frame(frame: Frame): void {
    const { id } = frame;
    const call = this.#callOf(id);
    if (!call.frame(frame)) return;
    call.isOver = true;
    this.#calls[id] = undefined;
    this.#free.push(id);
  }

  closed(fault: FrameFault | undefined): void {
    this.isClosed = true;
    const lost = new RelayFault(this.#isOpen ? "lost" : "connect", "it closed the connection without a response");
    for (const call of this.#calls.splice(0)) {
      if (call === undefined) continue;
      call.isOver = true;
      call.fail(lost);
    }
    if (fault !== undefined) this.#malformed(fault.message);
  }

  #callOf(id: number): LinkedCall {
    const call = this.#calls[id];
    if (call === undefined) throw new FrameFault("a frame belongs to none of its requests");
    return call;
  }
}

/** One request to a worker, until both sides are done with it. */
export class LinkedCall {
  /** Rejects with a RelayFault, or with the error of the body on its way from the client. */
  readonly response: Promise<LinkedResponse>;
  /** Its number belongs to another call from now on. */
  isOver = false;
  readonly #frames: FrameSocket;
  readonly #id: number;
  readonly #request: LinkedRequest;
  readonly #settle = Promise.withResolvers<LinkedResponse>();
  /** The response, if its body arrives in pieces. */
  #incoming: RelayedMessage | undefined;
  #hasHead = false;
  /** Bytes that the worker may still send, and that may still be sent to it. */
  #window = WINDOW_BYTES;
  #credit = WINDOW_BYTES;
  /** Bytes of the response that Content-Length announces and that have not arrived. */
  #left = Number.POSITIVE_INFINITY;
  #credited: (() => void) | undefined;
  #interims = 0;
  /** Whether the request was sent in pieces, so that the worker reports when it is done with it. */
  readonly #isStreamed: boolean;
  /** The worker has sent the end of its response. */
  #hasResponded = false;
  /** Nothing more is sent of the request. */
  #isSent = false;
  /** The host drops the rest of the response. */
  #isAborted = false;

  constructor(frames: FrameSocket, id: number, request: LinkedRequest) {
    this.#frames = frames;
    this.#id = id;
    this.#request = request;
    const { body } = request;
    this.#isStreamed = body !== undefined && !(body instanceof Uint8Array && body.length <= WHOLE_BYTES);
    this.response = this.#settle.promise;
  }

  begin(): void {
    const { head, body } = this.#request;
    const text = joinLines(head);
    if (!this.#isStreamed) {
      this.#isSent = true;
      this.#frames.send(frameKinds.request, this.#id, true, text, body as Uint8Array | undefined);
      return;
    }
    this.#frames.send(frameKinds.request, this.#id, false, text);
    void this.#send(body instanceof Uint8Array ? [body] : (body as AsyncIterable<Uint8Array>));
  }

  #abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#post(frameKinds.abort);
    this.fail(new RelayFault("lost", "it was aborted"));
  }

  /** Ends the call, because the client has its response or has left. */
  close(): void {
    if (!this.isOver) this.#abort();
  }

  /** The client has ended its side of its connection. */
  endConnection(): void {
    this.#post(frameKinds.half);
  }

  /** Ends the response, or what has arrived of it, with an error. */
  fail(error: Error): void {
    this.#isSent = true;
    this.#credited?.();
    this.#settle.reject(error);
    const incoming = this.#incoming;
    if (incoming !== undefined && !incoming.complete) incoming.destroy(error);
  }

  /** Bytes of the response. @throws {FrameFault} */
  data(piece: Buffer): void {
    const incoming = this.#incoming;
    if (this.#hasResponded || !this.#hasHead) throw new FrameFault("it sends a body without a head");
    this.#window -= piece.length;
    if (this.#window < 0) throw new FrameFault("it sends more of a body than the host has asked for");
    if (incoming === undefined || incoming.complete || incoming.destroyed) return;
    // More than Content-Length announces is not part of the response.
    const part = piece.length > this.#left ? piece.subarray(0, this.#left) : piece;
    this.#left -= part.length;
    incoming.give(part);
    if (this.#left === 0) incoming.finish([]);
  }

  /** Handles a frame of the worker. Returns true for the last one. @throws {FrameFault} */
  frame({ kind, isLast, head, body }: Frame): boolean {
    switch (kind) {
      case frameKinds.response:
        this.#respond(head, body, isLast);
        return isLast && this.#responded();
      case frameKinds.end:
        return this.#end(head);
      case frameKinds.credit:
        this.#take(Number(head));
        return false;
      case frameKinds.interim:
        this.#inform(head);
        return false;
      case frameKinds.abort:
        if (this.#hasResponded) throw new FrameFault("it aborts a response that has ended");
        this.fail(new RelayFault("lost", "it closed the connection without a complete response"));
        return true;
      case frameKinds.closed:
        if (!this.#hasResponded || !this.#isStreamed) throw new FrameFault("it ends a request that has not ended");
        this.#isSent = true;
        this.#credited?.();
        return true;
      default:
        throw new FrameFault("it sends a frame of the host");
    }
  }

  #post(kind: FrameKind, head = ""): void {
    if (!this.isOver) this.#frames.send(kind, this.#id, true, head);
  }

  #responded(): boolean {
    this.#hasResponded = true;
    return !this.#isStreamed;
  }

  #respond(text: string, body: Buffer, isLast: boolean): void {
    if (this.#hasHead) throw new FrameFault("it responds twice");
    this.#hasHead = true;
    if (this.#isAborted) return;
    const head = readHead(text);
    if (head === undefined || head.statusCode < MIN_STATUS) {
      this.#settle.reject(new RelayFault("bad_answer", "the head of its response is invalid"));
      return;
    }
    const { statusCode, length } = head;
    if (isLast && length === body.length && this.#mayHaveBody(statusCode)) {
      this.#settle.resolve({ ...head, body });
      return;
    }
    const message = this.#messageOf(head);
    this.#incoming = message;
    if (length !== undefined) this.#left = length;
    if (body.length > 0) this.data(body);
    if (isLast) this.#complete(message, []);
    this.#settle.resolve({ ...head, body: message });
  }

  /** The whole response has arrived. */
  #complete(incoming: RelayedMessage, trailers: string[]): void {
    if (incoming.complete || incoming.destroyed) return;
    if (Number.isFinite(this.#left) && this.#mayHaveBody(Number(incoming.statusCode)))
      incoming.destroy(new RelayFault("lost", "its body is shorter than it has announced"));
    else incoming.finish(trailers);
  }

  #mayHaveBody(status: number): boolean {
    return this.#request.head[0] !== "HEAD" && status !== 204 && status !== 205 && status !== 304;
  }

  #messageOf({ statusCode, statusMessage, rawHeaders }: ResponseHead): RelayedMessage {
    const message = new RelayedMessage(undefined, rawHeaders, (bytes) => {
      if (this.#hasResponded || this.#isAborted) return;
      this.#window += bytes;
      this.#post(frameKinds.credit, String(bytes));
    });
    message.statusCode = statusCode;
    message.statusMessage = statusMessage;
    // A reader that ends the response early ends the call.
    message.once("close", () => {
      if (!message.complete) this.close();
    });
    return message;
  }

  #end(trailers: string): boolean {
    const incoming = this.#incoming;
    if (!this.#hasHead || this.#hasResponded) throw new FrameFault("it ends a response that has not begun");
    const fields = splitLines(trailers);
    if (!areFields(fields)) throw new FrameFault("its trailers are malformed");
    const isLast = this.#responded();
    if (incoming !== undefined) this.#complete(incoming, fields);
    return isLast;
  }

  #take(bytes: number): void {
    if (!Number.isSafeInteger(bytes) || bytes <= 0 || this.#credit + bytes > WINDOW_BYTES)
      throw new FrameFault("it asks for more of a body than it may");
    this.#credit += bytes;
    this.#credited?.();
  }

  #inform(text: string): void {
    this.#interims += 1;
    if (this.#hasHead || this.#interims > MAX_INTERIM) throw new FrameFault("it sends too many interim responses");
    if (this.#isAborted) return;
    const head = readHead(text);
    if (head !== undefined) {
      this.#request.informed?.(head.statusCode, head.rawHeaders);
      return;
    }
    this.#settle.reject(new RelayFault("bad_answer", "the head of an interim response is invalid"));
    this.#abort();
  }

  async #send(body: AsyncIterable<Uint8Array> | readonly Uint8Array[]): Promise<void> {
    try {
      for await (const piece of body) {
        for (let at = 0; at < piece.length; ) {
          // A worker that asks for single bytes gets larger pieces.
          while (this.#credit < Math.min(piece.length - at, LEAST_BYTES) && !this.#isSent) {
            await new Promise<void>((resolve) => {
              this.#credited = resolve;
            });
          }
          if (this.#isSent) return;
          const part = piece.subarray(at, at + this.#credit);
          this.#credit -= part.length;
          at += part.length;
          this.#frames.send(frameKinds.data, this.#id, false, "", part);
        }
        if (this.#isSent) return;
      }
      if (this.#isSent) return;
      this.#isSent = true;
      this.#post(frameKinds.end, joinLines(this.#request.trailers?.() ?? []));
    } catch (error) {
      // The client has made a mistake, or has left.
      this.#settle.reject(error);
      this.#abort();
    }
  }
}

interface ResponseHead extends Omit<LinkedResponse, "body"> {
  /** The value of Content-Length; undefined without that field. */
  readonly length: number | undefined;
}

const announcedLength = /^\d{1,15}$/;

/** Reads the head of a response as Node.js writes it; undefined if a part of it is invalid. */
function readHead(text: string): ResponseHead | undefined {
  const [first = "", ...lines] = text.split("\r\n");
  const [, status, statusMessage = ""] = statusLine.exec(first) ?? [];
  if (status === undefined) return undefined;
  const rawHeaders: string[] = [];
  const lengths: string[] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    const value = line.slice(colon + 1).trim();
    rawHeaders.push(name, value);
    if (name.length === LENGTH.length && name.toLowerCase() === LENGTH) lengths.push(value);
  }
  // Programs in front of this server must not take the end of the body for another place.
  if (lengths.length > 1 || lengths.some((value) => !announcedLength.test(value))) return undefined;
  const [length] = lengths;
  return areFields(rawHeaders)
    ? {
        statusCode: Number(status),
        statusMessage,
        rawHeaders,
        length: length === undefined ? undefined : Number(length),
      }
    : undefined;
}

function areFields(fields: readonly string[]): boolean {
  if (fields.length % 2 !== 0) return false;
  for (let at = 0; at < fields.length; at += 2)
    if (!isToken(fields[at] as string) || !isFieldValue(fields[at + 1] as string)) return false;
  return true;
}
