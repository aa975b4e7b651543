/**
 * Frames of requests and responses over one connection between the host and a worker. Everything
 * that is sent in one turn of the event loop is written together.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import { FrameFault } from "./frames.ts";

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
  /** Bytes of a `data` frame, in any number of pieces. @throws {FrameFault} */
  data(id: number, piece: Buffer): void;
  /** Any other frame. @throws {FrameFault} */
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
  #parts: Buffer[] = [];
  #isScheduled = false;
  /** Called before the frames of a turn are written. */
  #beforeFlush: (() => void)[] = [];
  #chunks: Buffer[] = [];
  #available = 0;
  #needed = PREFIX_BYTES;
  /** The `data` frame whose bytes are arriving, and how many are still to come. */
  #dataId = 0;
  #dataLeft = 0;
  #fault: FrameFault | undefined;
  readonly #isPaced: boolean;
  /** Number of small frames since the last pause, or in as much time, and when it began. */
  #smallFrames = 0;
  #countedSince = 0;
  #isPaused = false;

  constructor(
    socket: Socket,
    receiver: FrameReceiver,
    { maxBytes = MAX_FRAME_BYTES, isPaced = false }: FrameLimits = {},
  ) {
    this.#isPaced = isPaced;
    this.#socket = socket;
    this.#receiver = receiver;
    this.#maxBytes = maxBytes;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("error", () => undefined);
    socket.once("close", () => receiver.closed(this.#fault));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Calls back before the frames of this turn are written. */
  beforeFlush(callback: () => void): void {
    this.#beforeFlush.push(callback);
    this.#schedule();
  }

  /** The bytes of `body` must not change afterwards. */
  send(kind: FrameKind, id: number, isLast = true, head = "", body: Uint8Array = nothing): void {
    if (this.#socket.destroyed) return;
    const isCopied = body.length <= MAX_COPIED_BYTES;
    const ownBytes = PREFIX_BYTES + head.length + (isCopied ? body.length : 0);
    this.#reserve(ownBytes);
    const slab = this.#slab;
    const at = this.#to;
    slab.writeUInt32BE(head.length + body.length, at);
    slab[at + 4] = kind;
    slab[at + 5] = isLast ? 1 : 0;
    slab.writeUInt16BE(0, at + 6);
    slab.writeUInt32BE(id, at + 8);
    slab.writeUInt32BE(head.length, at + 12);
    if (head.length > 0) slab.write(head, at + PREFIX_BYTES, "latin1");
    if (isCopied && body.length > 0) slab.set(body, at + PREFIX_BYTES + head.length);
    this.#to = at + ownBytes;
    if (!isCopied) {
      this.#cut();
      this.#parts.push(body as Buffer);
    }
    this.#schedule();
  }

  /** Handles bytes that have arrived. */
  receive(chunk: Buffer): void {
    // The receiver may put off long work with setImmediate, and its frames must not wait for that.
    this.#schedule();
    this.#chunks.push(chunk);
    this.#available += chunk.length;
    this.#handle();
  }

  #handle(): void {
    try {
      while (this.#fault === undefined && !this.#isPaused && this.#available >= this.#needed) this.#parse();
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;
      this.#fault = error;
      this.#socket.destroy();
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
    this.#parts = [];
    const socket = this.#socket;
    if (parts.length > 1) socket.cork();
    for (const part of parts) socket.write(part);
    if (parts.length > 1) socket.uncork();
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
      this.#socket.resume();
      this.#handle();
    }, PAUSE_MS).unref();
  }

  /** Handles one frame, or the next piece of one. */
  #parse(): void {
    const bytes = this.#joined();
    let at = 0;
    while (this.#fault === undefined && !this.#isPaused) {
      if (this.#dataLeft > 0) {
        if (at === bytes.length) break;
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
      if (kind === frameKinds.data) {
        if (headBytes > 0 || size === 0) throw new FrameFault("a frame of its requests is malformed");
        at += PREFIX_BYTES;
        this.#dataId = id;
        this.#dataLeft = size;
        continue;
      }
      if (size > this.#maxBytes) throw new FrameFault(`a frame of its requests has ${size} bytes`);
      if (bytes.length - at < PREFIX_BYTES + size) {
        this.#needed = PREFIX_BYTES + size;
        break;
      }
      const from = at + PREFIX_BYTES;
      const frame: Frame = {
        kind,
        id,
        isLast: bytes[at + 5] === 1,
        head: bytes.toString("latin1", from, from + headBytes),
        body: headBytes === size ? nothing : bytes.subarray(from + headBytes, from + size),
      };
      at = from + size;
      this.#guard(() => this.#receiver.frame(frame));
      if (kind === frameKinds.credit) this.#count(size);
    }
    this.#keep(bytes, at);
  }

  /** Keeps the bytes that are not handled yet. */
  #keep(bytes: Buffer, at: number): void {
    const left = bytes.length - at;
    this.#chunks = left === 0 ? [] : [bytes.subarray(at)];
    this.#available = left;
    if (this.#dataLeft > 0) this.#needed = 1;
    else if (left < PREFIX_BYTES) this.#needed = PREFIX_BYTES;
  }

  #joined(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
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
