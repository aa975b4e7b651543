/**
 * The host's end of the connection that carries the requests for one worker. It checks every frame,
 * because the worker may be hostile.
 */
import { isFieldValue, isToken } from "../util/header_fields.ts";
import { asHost } from "../util/usage.ts";
import { RelayFault } from "./fault.ts";
import { FrameFault } from "./frames.ts";
import type { InnerAddress } from "./inner_request.ts";
import { type BodySource, LinkedBody } from "./linked_body.ts";
import { ReadMemory } from "./read_memory.ts";
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

/** Maximum number of heads that a connection remembers, and the maximum length of each. */
const MAX_KNOWN_HEADS = 64;
const MAX_KNOWN_LENGTH = 1024;

const LENGTH = "content-length";

const statusLine = /^HTTP\/1\.1 (\d{3}) ([^\r\n]*)$/;

/** Bytes of a body that are sent at least, unless it has fewer. */
const LEAST_BYTES = 16 * 1024;

export interface LinkedRequest {
  /** The lines of the head, as `ServedRequests` reads them. */
  readonly head: readonly string[];
  /**
   * The body, or its pieces as they arrive, each of which is valid until the next one is requested;
   * undefined for a request without one.
   */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Returns the trailers, as a flat list. Called after the body has been read. */
  trailers?(): readonly string[];
  /** Called for each interim response, such as 103. */
  informed?(status: number, rawHeaders: readonly string[]): void;
}

export interface LinkedResponse {
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly rawHeaders: readonly string[];
  /** The body, if it has arrived in one piece, or its pieces. */
  readonly body: Buffer | LinkedBody;
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
  readonly frames: FrameSocket;
  readonly memory = new ReadMemory();
  readonly heads = new HeadReader();
  readonly #malformed: (reason: string) => void;
  /**
   * The calls by their number, which a later call uses again. A `Map` with ever new keys would link
   * its old tables, and with them all calls until the next full garbage collection.
   */
  readonly #calls: (LinkedCall | undefined)[] = [];
  readonly #free: number[] = [];
  isClosed = false;

  constructor({ path, token }: InnerAddress, malformed: (reason: string) => void) {
    this.#malformed = malformed;
    // The connection belongs to the host, and not to the module whose request opens it.
    const limits = { maxBytes: MAX_HEAD_BYTES + WHOLE_BYTES, isPaced: true };
    this.frames = asHost(() => FrameSocket.open(path, this.memory, this, limits));
    this.frames.send(frameKinds.hello, 0, true, token);
  }

  send(request: LinkedRequest): LinkedCall {
    const id = this.#free.pop() ?? this.#calls.length;
    const call = new LinkedCall(this, id, request);
    this.#calls[id] = call;
    call.begin();
    return call;
  }

  close(): void {
    this.frames.destroy();
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
    const lost = new RelayFault(this.frames.isOpen ? "lost" : "connect", "it closed the connection without a response");
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

const ignore = () => undefined;

/** One request to a worker, until both sides are done with it. */
export class LinkedCall implements BodySource {
  /** Rejects with a RelayFault, or with the error of the body on its way from the client. */
  readonly response: Promise<LinkedResponse>;
  /** Its number belongs to another call from now on. */
  isOver = false;
  readonly #link: LinkConnection;
  readonly #id: number;
  readonly #request: LinkedRequest;
  readonly #settle = Promise.withResolvers<LinkedResponse>();
  /** The response, if its body arrives in pieces. */
  #incoming: LinkedBody | undefined;
  #hasHead = false;
  /** Whether a response with the status of the head has a body. */
  #mayHaveBody = true;
  /** Bytes that the worker may still send, and that may still be sent to it. */
  #window = WINDOW_BYTES;
  #credit = WINDOW_BYTES;
  /** Bytes of the response that Content-Length announces and that have not arrived. */
  #left = Number.POSITIVE_INFINITY;
  /** Continues the sending of the body. */
  #wake: () => void = ignore;
  #interims = 0;
  /** Whether the request was sent in pieces, so that the worker reports when it is done with it. */
  readonly #isStreamed: boolean;
  /** The worker has sent the end of its response. */
  #hasResponded = false;
  /** Nothing more is sent of the request. */
  #isSent = false;
  /** The host drops the rest of the response. */
  #isAborted = false;

  constructor(link: LinkConnection, id: number, request: LinkedRequest) {
    this.#link = link;
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
      this.#link.frames.send(frameKinds.request, this.#id, true, text, body as Uint8Array | undefined);
      return;
    }
    this.#link.frames.send(frameKinds.request, this.#id, false, text);
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
    this.#wake();
    this.#settle.reject(error);
    this.#incoming?.fail(error);
  }

  /** Bytes of the response. @throws {FrameFault} */
  data(piece: Buffer): void {
    const incoming = this.#incoming;
    if (this.#hasResponded || !this.#hasHead) throw new FrameFault("it sends a body without a head");
    this.#window -= piece.length;
    if (this.#window < 0) throw new FrameFault("it sends more of a body than the host has asked for");
    if (incoming === undefined || incoming.isEnded) return;
    // More than Content-Length announces is not part of the response.
    const part = piece.length > this.#left ? piece.subarray(0, this.#left) : piece;
    this.#left -= part.length;
    incoming.give(this.#link.memory.keep(part));
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
        this.#wake();
        return true;
      default:
        throw new FrameFault("it sends a frame of the host");
    }
  }

  #post(kind: FrameKind, head = ""): void {
    if (!this.isOver) this.#link.frames.send(kind, this.#id, true, head);
  }

  #responded(): boolean {
    this.#hasResponded = true;
    return !this.#isStreamed;
  }

  #respond(text: string, body: Buffer, isLast: boolean): void {
    if (this.#hasHead) throw new FrameFault("it responds twice");
    this.#hasHead = true;
    if (this.#isAborted) return;
    const head = this.#link.heads.read(text);
    if (head === undefined || head.statusCode < MIN_STATUS) {
      this.#settle.reject(new RelayFault("bad_answer", "the head of its response is invalid"));
      return;
    }
    const { statusCode, rawHeaders, statusMessage, length } = head;
    const received = { statusCode, statusMessage, rawHeaders };
    this.#mayHaveBody = this.#isBodyOf(statusCode);
    if (isLast && length === body.length && this.#mayHaveBody) {
      this.#settle.resolve({ ...received, body: Buffer.from(body) });
      return;
    }
    const incoming = new LinkedBody(this);
    this.#incoming = incoming;
    if (length !== undefined) this.#left = length;
    if (body.length > 0) this.data(body);
    if (isLast) this.#complete(incoming, []);
    this.#settle.resolve({ ...received, body: incoming });
  }

  /** The whole response has arrived. */
  #complete(incoming: LinkedBody, trailers: string[]): void {
    if (incoming.isEnded) return;
    if (Number.isFinite(this.#left) && this.#left > 0 && this.#mayHaveBody)
      incoming.fail(new RelayFault("lost", "its body is shorter than it has announced"));
    else incoming.finish(trailers);
  }

  #isBodyOf(status: number): boolean {
    return this.#request.head[0] !== "HEAD" && status !== 204 && status !== 205 && status !== 304;
  }

  /** The reader has taken bytes of the response. */
  taken(bytes: number): void {
    if (this.#hasResponded || this.#isAborted) return;
    this.#window += bytes;
    this.#post(frameKinds.credit, String(bytes));
  }

  release(piece: Uint8Array): void {
    this.#link.memory.release(piece);
  }

  /** The reader ends the response early. */
  left(): void {
    this.close();
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
    this.#wake();
  }

  #inform(text: string): void {
    this.#interims += 1;
    if (this.#hasHead || this.#interims > MAX_INTERIM) throw new FrameFault("it sends too many interim responses");
    if (this.#isAborted) return;
    const head = this.#link.heads.read(text);
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
        let unwritten = 0;
        const written = () => {
          unwritten -= 1;
          this.#wake();
        };
        for (let at = 0; at < piece.length; ) {
          // A worker that asks for single bytes gets larger pieces.
          const wanted = Math.min(piece.length - at, LEAST_BYTES);
          await this.#until(() => this.#credit >= wanted);
          if (this.#isSent) return;
          const part = piece.subarray(at, at + this.#credit);
          this.#credit -= part.length;
          at += part.length;
          unwritten += 1;
          this.#link.frames.send(frameKinds.data, this.#id, false, "", part, written);
        }
        await this.#until(() => unwritten === 0);
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

  /** Waits, and no longer than until nothing more is sent. */
  async #until(isReady: () => boolean): Promise<void> {
    while (!isReady() && !this.#isSent) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

interface ResponseHead extends Omit<LinkedResponse, "body"> {
  /** The value of Content-Length; undefined without that field. */
  readonly length: number | undefined;
}

const announcedLength = /^\d{1,15}$/;

/**
 * Reads heads of responses. It remembers some, because most responses of a module have few heads.
 */
class HeadReader {
  readonly #known = new Map<string, ResponseHead>();

  /** Returns the head as Node.js writes it; undefined if a part of it is invalid. */
  read(text: string): ResponseHead | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const head = readHead(text);
    if (head === undefined || text.length > MAX_KNOWN_LENGTH) return head;
    if (this.#known.size >= MAX_KNOWN_HEADS) this.#known.clear();
    this.#known.set(text, head);
    return head;
  }
}

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
