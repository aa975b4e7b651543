/**
 * Frames of requests and responses over one connection between the host and a worker. Everything
 * that is sent in one turn of the event loop is written together.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { connect, type Socket } from "node:net";
import { FrameFault } from "./frames.ts";
import type { ReadMemory } from "./read_memory.ts";

/** The kinds of frames, by the number that stands for each. */
export const frameKinds = {
  /** Opens a connection: the token. Its first byte tells such a connection from one of HTTP. */
  hello: 0,
  /** The head of a request, and its body if that is small and has arrived. */
  request: 1,
  /** The head of a response, as text of HTTP/1, and the beginning of its body. */
  response: 2,
  /** An interim response, as text of HTTP/1. */
  interim: 3,
  /** Bytes of a body. */
  data: 4,
  /** The end of a body: its trailers. */
  end: 5,
  /** The other end may send more bytes of a body: their number. */
  credit: 6,
  /** The client has ended its side of its connection. */
  half: 7,
  /** The request is over before its end. */
  abort: 8,
  /** The worker is done with a request whose body was sent in pieces. */
  closed: 9,
} as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

/** A frame, without the bytes of `data`. */
export interface Frame {
  readonly kind: FrameKind;
  /** The number of the request. */
  readonly id: number;
  /** Whether nothing follows this part of the message. */
  readonly isLast: boolean;
  /** Text with one byte for each character. */
  readonly head: string;
  readonly body: Buffer;
}

/** Bytes of a body that may be on their way before the receiver has asked for more. */
export const WINDOW_BYTES = 256 * 1024;

/** Bytes that a reader has taken before the other end gets credit for more. */
export const CREDIT_STEP_BYTES = WINDOW_BYTES / 2;

/** Bytes of a body that are sent together with the head. */
export const WHOLE_BYTES = 64 * 1024;

/** Maximum length of the head of a response. */
export const MAX_HEAD_BYTES = 64 * 1024;

/** Maximum number of interim responses, such as 103, to one request: each costs time and bytes. */
export const MAX_INTERIM = 100;

/** The lengths of the frame and of its head, its kind, whether it is the last, and the request. */
const PREFIX_BYTES = 16;
const MAX_FRAME_BYTES = 2 ** 24 - 1;
const SLAB_BYTES = 64 * 1024;
/** Larger bodies are not copied. */
const MAX_COPIED_BYTES = 8 * 1024;
const MAX_KIND = Math.max(...Object.values(frameKinds));

/**
 * A worker can send a body byte by byte. A frame costs time whatever its size, so that small ones
 * are limited: to this number in a pause, which is 25,600 a second.
 */
const MAX_SMALL_FRAMES = 256;
const SMALL_BYTES = 256;
const PAUSE_MS = 10;

const nothing = Buffer.alloc(0);

export interface FrameReceiver {
  /**
   * Bytes of a `data` frame, in any number of pieces. The bytes of a connection that `FrameSocket`
   * has opened are only valid during the call, unless they are kept.
   *
   * @throws {FrameFault}
   */
  data(id: number, piece: Buffer): void;
  /** Any other frame. The same is true for its body. @throws {FrameFault} */
  frame(frame: Frame): void;
  /** The connection is closed. */
  closed(fault: FrameFault | undefined): void;
}

export interface FrameLimits {
  /** Maximum length of a frame that is not `data`. Default: what a frame can have. */
  readonly maxBytes?: number;
  /** Whether small frames wait when there are so many that they would keep this thread busy. */
  readonly isPaced?: boolean;
}

/** One end of a connection that carries frames. */
export class FrameSocket {
  readonly #socket: Socket;
  readonly #receiver: FrameReceiver;
  readonly #maxBytes: number;
  /** Runs each frame in the context of the connection, so that requests share no context. */
  readonly #inContext = AsyncLocalStorage.snapshot();
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  /** Where the bytes in the slab begin that are not written yet, and where they end. */
  #from = 0;
  #to = 0;
  /** Complete parts of what is to be written before the bytes in the slab. */
  #parts: Uint8Array[] = [];
  /** Called when these parts are written. */
  #written: (() => void)[] = [];
  #isScheduled = false;
  /** Called before the frames of a turn are written. */
  #beforeFlush: (() => void)[] = [];
  /** Bytes of `receive` that are not handled yet. */
  #rest: Buffer = nothing;
  /** The `data` frame whose bytes are arriving, and how many are still to come. */
  #dataId = 0;
  #dataLeft = 0;
  #fault: FrameFault | undefined;
  readonly #isPaced: boolean;
  /** Number of small frames since the last pause, or in as much time, and when it began. */
  #smallFrames = 0;
  #countedSince = 0;
  #isPaused = false;
  /** Handles the bytes that have arrived during a pause. */
  #continue: () => void = () => undefined;
  isOpen = false;

  constructor(
    socket: Socket,
    receiver: FrameReceiver,
    { maxBytes = MAX_FRAME_BYTES, isPaced = false }: FrameLimits = {},
  ) {
    this.#isPaced = isPaced;
    this.#socket = socket;
    this.#receiver = receiver;
    this.#maxBytes = maxBytes;
    socket.on("error", () => undefined);
    socket.once("close", () => receiver.closed(this.#fault));
    socket.once("connect", () => {
      this.isOpen = true;
    });
  }

  /** Opens a connection. `memory`: where it is read to. */
  static open(path: string, memory: ReadMemory, receiver: FrameReceiver, limits: FrameLimits): FrameSocket {
    const callback = (bytes: number) => {
      memory.handled(frames.#handle(memory.filled(bytes)));
      return true;
    };
    const socket = connect({ path, onread: { buffer: () => memory.room(), callback } });
    const frames = new FrameSocket(socket, receiver, limits);
    frames.#continue = () => void callback(0);
    socket.once("close", () => memory.close());
    return frames;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Calls back before the frames of this turn are written. */
  beforeFlush(callback: () => void): void {
    this.#beforeFlush.push(callback);
    this.#schedule();
  }

  /**
   * Sends a frame. The bytes of `body` must not change until `written` is called, which never
   * happens when the connection is lost.
   */
  send(kind: FrameKind, id: number, isLast = true, head = "", body: Uint8Array = nothing, written?: () => void): void {
    this.#begin(kind, id, isLast, head, body.length);
    this.#append(body);
    if (written !== undefined) this.#written.push(written);
  }

  /** Sends bytes of a body as one frame. They must not change afterwards. */
  sendPieces(id: number, pieces: readonly Uint8Array[], bytes: number): void {
    this.#begin(frameKinds.data, id, false, "", bytes);
    for (const piece of pieces) this.#append(piece);
  }

  /** Handles bytes that have arrived on a connection that another end has opened. */
  receive(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = bytes.subarray(this.#handle(bytes));
  }

  /** Writes the prefix and the head of a frame. */
  #begin(kind: FrameKind, id: number, isLast: boolean, head: string, bodyBytes: number): void {
    this.#reserve(PREFIX_BYTES + head.length);
    const slab = this.#slab;
    const at = this.#to;
    slab.writeUInt32BE(head.length + bodyBytes, at);
    slab[at + 4] = kind;
    slab[at + 5] = isLast ? 1 : 0;
    slab.writeUInt16BE(0, at + 6);
    slab.writeUInt32BE(id, at + 8);
    slab.writeUInt32BE(head.length, at + 12);
    if (head.length > 0) slab.write(head, at + PREFIX_BYTES, "latin1");
    this.#to = at + PREFIX_BYTES + head.length;
    this.#schedule();
  }

  #append(piece: Uint8Array): void {
    if (piece.length > MAX_COPIED_BYTES) {
      this.#cut();
      this.#parts.push(piece);
    } else if (piece.length > 0) {
      this.#reserve(piece.length);
      this.#slab.set(piece, this.#to);
      this.#to += piece.length;
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    const callbacks = this.#beforeFlush;
    this.#beforeFlush = [];
    for (const callback of callbacks) callback();
    this.#isScheduled = false;
    this.#cut();
    const parts = this.#parts;
    const written = this.#written;
    this.#parts = [];
    this.#written = [];
    const socket = this.#socket;
    if (socket.destroyed) return;
    if (parts.length > 1) socket.cork();
    const last = written.length === 0 ? undefined : parts.pop();
    for (const part of parts) socket.write(part);
    if (last !== undefined) {
      socket.write(last, (error) => {
        if (!error) for (const callback of written) callback();
      });
    }
    socket.uncork();
    // The system has mostly taken the bytes by now, and then the slab can be used again.
    if (socket.writableLength === 0) this.#from = this.#to = 0;
  }

  /** Moves the bytes of the slab that are not written yet to the parts. */
  #cut(): void {
    if (this.#to > this.#from) this.#parts.push(this.#slab.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #reserve(bytes: number): void {
    if (this.#to + bytes <= this.#slab.length) return;
    this.#cut();
    this.#slab = Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, bytes));
    this.#from = this.#to = 0;
  }

  /** Returns how many of the bytes are handled: the others are the beginning of a frame. */
  #handle(bytes: Buffer): number {
    // The receiver may put off long work with setImmediate, and its frames must not wait for that.
    this.#schedule();
    try {
      return this.#parse(bytes);
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      this.#fault = error;
      this.#socket.destroy();
      return bytes.length;
    }
  }

  /** Counts a frame whose kind can occur any number of times in a request. */
  #count(size: number): void {
    if (!this.#isPaced || size > SMALL_BYTES) return;
    this.#smallFrames += 1;
    if (this.#smallFrames < MAX_SMALL_FRAMES) return;
    const now = performance.now();
    const isFast = now - this.#countedSince < PAUSE_MS;
    this.#countedSince = now;
    this.#smallFrames = 0;
    if (!isFast) return;
    this.#isPaused = true;
    this.#socket.pause();
    setTimeout(() => {
      this.#isPaused = false;
      this.#countedSince = performance.now();
      this.#continue();
      if (!this.#isPaused) this.#socket.resume();
    }, PAUSE_MS).unref();
  }

  /** Handles all complete frames, and what has arrived of a `data` frame. */
  #parse(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && this.#fault === undefined && !this.#isPaused) {
      if (this.#dataLeft > 0) {
        const piece = bytes.subarray(at, at + this.#dataLeft);
        at += piece.length;
        this.#dataLeft -= piece.length;
        this.#guard(() => this.#receiver.data(this.#dataId, piece));
        this.#count(piece.length);
        continue;
      }
      if (bytes.length - at < PREFIX_BYTES) break;
      const size = bytes.readUInt32BE(at);
      const kind = bytes[at + 4] as FrameKind;
      const id = bytes.readUInt32BE(at + 8);
      const headBytes = bytes.readUInt32BE(at + 12);
      if (kind > MAX_KIND || headBytes > size) throw new FrameFault("a frame of its requests is malformed");
      const isLast = bytes[at + 5] === 1;
      const from = at + PREFIX_BYTES;
      if (kind === frameKinds.data) {
        if (headBytes > 0 || size === 0) throw new FrameFault("a frame of its requests is malformed");
        this.#dataId = id;
        this.#dataLeft = size;
        at = from;
        continue;
      }
      if (size > this.#maxBytes) throw new FrameFault(`a frame of its requests has ${size} bytes`);
      if (bytes.length - from < size) break;
      const head = bytes.toString("latin1", from, from + headBytes);
      const body = headBytes === size ? nothing : bytes.subarray(from + headBytes, from + size);
      at = from + size;
      this.#guard(() => this.#receiver.frame({ kind, id, isLast, head, body }));
      if (kind === frameKinds.credit) this.#count(size);
    }
    return at;
  }

  /** An error of a listener belongs to its request, and must not break the others. */
  #guard(handle: () => void): void {
    try {
      this.#inContext(handle);
    } catch (error) {
      if (error instanceof FrameFault) throw error;
      setImmediate(() => {
        throw error;
      });
    }
  }
}

/** Joins fields to a text. No field of HTTP contains a line break. */
export function joinLines(fields: readonly string[]): string {
  return fields.join("\n");
}

export function splitLines(text: string): string[] {
  return text === "" ? [] : text.split("\n");
}
