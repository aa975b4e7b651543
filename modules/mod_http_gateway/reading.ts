/** Reads the blocks for one response: decides who is asked for them, and limits the time. */
import { setImmediate as turn } from "node:timers/promises";
import { BlockLeases, type NodeModule, type ReadBlock, readSoon } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import type { HttpRequest, PooledBody } from "../../core/types.ts";
import { Refusal } from "./errors/refusal.ts";
import type { DnsLinks } from "./hosts/dns_links.ts";
import type { PathBlocks } from "./path_blocks.ts";
import type { GatewaySettings } from "./settings.ts";

/**
 * Maximum number of consecutive blocks that may be read without producing a byte of the response. A
 * small graph can have more paths than anybody can follow, and lead to nothing. Every honest path
 * or file needs fewer.
 */
const MAX_FRUITLESS_BLOCKS = 8192;

/** Shorter blocks do not use a pooled buffer, and shorter parts of blocks are copied. */
const MIN_POOLED_BYTES = 16 * 1024;

type Buffers = NodeModule["lowLevel"]["blocks"]["buffers"];

export interface ReadingDeps extends Pick<GatewaySettings, "stallTime" | "totalTime"> {
  readonly offline: boolean;
  /** Returns whether the client has disconnected. An abort signal would be more expensive. */
  readonly isGone: () => boolean;
  readonly blocks: PathBlocks;
  readonly links: DnsLinks;
}

export class Reading {
  /** Whether other nodes must not be asked for blocks and names. */
  readonly offline: boolean;
  /**
   * Aborts when the client disconnects or a time limit is reached; undefined if everything is on
   * this machine.
   */
  readonly signal: AbortSignal | undefined;
  /** The DNSLinks of domains. */
  readonly links: DnsLinks;
  readonly #node: NodeModule;
  readonly #blocks: PathBlocks;
  readonly #isGone: () => boolean;
  // Created on first use, because most requests need only some of them.
  #read: ReadBlock | undefined;
  #readLeaf: ReadBlock | undefined;
  #readPath: ReadBlock | undefined;
  /** Number of blocks since the last byte of the response. */
  #fruitless = 0;
  readonly #stallTime: number;
  readonly #until: number;
  #late: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #leases: BlockLeases | undefined;
  #isOver = false;

  constructor(
    node: NodeModule,
    request: HttpRequest,
    { stallTime, totalTime, offline, blocks, links, isGone }: ReadingDeps,
  ) {
    this.#isGone = isGone;
    this.offline = offline;
    this.links = links;
    this.#stallTime = stallTime;
    this.#until = totalTime === 0 ? Number.POSITIVE_INFINITY : performance.now() + totalTime;
    if (!offline) {
      this.#late = new AbortController();
      this.signal = AbortSignal.any([request.signal, this.#late.signal]);
      this.#wait();
    }
    this.#node = node;
    this.#blocks = blocks;
  }

  get read(): ReadBlock {
    this.#read ??= this.#reader(undefined);
    return this.#read;
  }

  /**
   * Like `read`, for blocks that are sent to the client. They use arrays of `buffers`, which can be
   * returned.
   */
  get readLeaf(): ReadBlock {
    this.#readLeaf ??= this.#reader(this.buffers);
    return this.#readLeaf;
  }

  /** The buffers of `readLeaf`. */
  get buffers(): Buffers {
    return this.#node.lowLevel.blocks.buffers;
  }

  /** Reads blocks on paths. Blocks without names are read as by `readLeaf`. */
  get readPath(): ReadBlock {
    this.#readPath ??= this.#blocks.reader(this);
    return this.#readPath;
  }

  #reader(buffers: Buffers | undefined): ReadBlock {
    const { signal, offline } = this;
    return this.#bounded(this.#node.lowLevel.reader({ signal, offline, nameless: true, buffers }));
  }

  /**
   * Leases of the buffers that are sent to the client. They limit how much memory slow clients
   * occupy together.
   */
  get leases(): BlockLeases {
    if (this.#leases === undefined) {
      this.#leases = new BlockLeases({
        release: (piece) => this.buffers.release(piece),
        waiting: (isWaiting) => (isWaiting ? clearTimeout(this.#timer) : this.#wait()),
      });
      if (this.#isOver) this.#leases.end();
    }
    return this.#leases;
  }

  /** Called when the client has received the response, or has disconnected. */
  over(): void {
    this.#isOver = true;
    this.#leases?.end();
  }

  /** Limits fruitless reads, even when all blocks are on this machine. */
  #bounded(read: ReadBlock): ReadBlock {
    // Not async, because a promise for each of very many blocks would cost more than everything
    // else here.
    const refused = (): Promise<never> | undefined => {
      if (this.#isGone()) return Promise.reject(clientLeft());
      this.#fruitless += 1;
      if (this.#fruitless <= MAX_FRUITLESS_BLOCKS) return undefined;
      return Promise.reject(
        new Refusal(404, `${MAX_FRUITLESS_BLOCKS} blocks in a row contain no bytes of the content`),
      );
    };
    const bounded: ReadBlock = (cid) => refused() ?? read(cid);
    const soon: ReadBlock["soon"] = (cid) => refused() ?? readSoon(read, cid);
    const { part: partOf } = read;
    const part: ReadBlock["part"] = partOf && ((cid, span) => refused() ?? partOf(cid, span));
    const peek: ReadBlock["peek"] = (cids) => {
      if (this.#isGone() || this.#fruitless + cids.length > MAX_FRUITLESS_BLOCKS) return [];
      this.#fruitless += cids.length;
      return read.peek?.(cids) ?? [];
    };
    return Object.assign(bounded, { peek, soon, ...(part && { part }) });
  }

  /**
   * Called when bytes have arrived. The stall timer pauses then, however long the client takes to
   * read them. @throws {HttpError} 408
   */
  #came(piece: string | Uint8Array): void {
    if (performance.now() > this.#until) throw new HttpError(408, "The response has taken longer than allowed");
    clearTimeout(this.#timer);
    if (piece.length > 0) this.#fruitless = 0;
  }

  /** Restarts the stall timer until the next bytes arrive. */
  #wait(): void {
    if (this.#late === undefined) return;
    const left = Math.min(
      this.#stallTime === 0 ? Number.POSITIVE_INFINITY : this.#stallTime,
      this.#until - performance.now(),
    );
    clearTimeout(this.#timer);
    this.#timer =
      left === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => this.#giveUp(), Math.max(0, left)).unref();
  }

  #giveUp(): void {
    this.#late?.abort(new DOMException("The next bytes did not arrive in time", "TimeoutError"));
  }

  /** Whether the response was abandoned because bytes did not arrive in time. */
  get isLate(): boolean {
    return this.#late?.signal.aborted === true;
  }

  /** Called when the response is complete, or has failed. */
  end(): void {
    clearTimeout(this.#timer);
    this.#late = undefined;
  }

  /**
   * Returns the bytes of a short response, which are part of a pooled block. Copies them if they
   * would keep far more memory occupied.
   */
  few(bytes: Uint8Array): Gathered {
    this.#came(bytes);
    const body = bytes.length < MIN_POOLED_BYTES ? undefined : this.leased(bytes);
    if (body !== undefined) return { start: bytes, body };
    const copy = bytes.slice();
    this.buffers.release(bytes);
    return { start: copy, body: copy };
  }

  /**
   * Returns the body of a response that is completely in memory, and whose block returns to the
   * pool; undefined if too much memory is already leased.
   */
  leased(bytes: Uint8Array): Uint8Array | PooledBody | undefined {
    const { leases } = this;
    if (!leases.lease(bytes)) return undefined;
    this.end();
    if (bytes.length < MIN_POOLED_BYTES) return bytes;
    return { whole: bytes, [Symbol.asyncIterator]: () => only(bytes), release: (piece) => leases.release(piece) };
  }

  /**
   * Returns the `length` bytes of a short response in one piece. If later bytes are missing,
   * returns a body that breaks off after the earlier ones. Rejects if the first bytes are missing.
   * `release` returns a piece to the pool.
   */
  async gather(
    pieces: AsyncIterable<Uint8Array>,
    length: number,
    release: (piece: Uint8Array) => void,
  ): Promise<Gathered> {
    const bytes = Buffer.allocUnsafe(length);
    let at = 0;
    try {
      for await (const piece of pieces) {
        this.#came(piece);
        if (at + piece.length > length) throw new Refusal(404, wrongLength(length));
        bytes.set(piece, at);
        at += piece.length;
        release(piece);
        this.#wait();
      }
      if (at !== length) throw new Refusal(404, wrongLength(length));
      return { start: bytes, body: bytes };
    } catch (error) {
      if (at === 0) throw error;
      const start = bytes.subarray(0, at);
      return { start, body: this.body(failing(start, error), { length }) };
    }
  }

  /**
   * Yields the pieces of a body; `length` is their total length, if the response announces it. If
   * reading fails after the response has begun, the connection is closed, so that nobody takes the
   * response for complete. Missing content, or content shorter than announced, is not a fault of
   * this server.
   */
  body<P extends string | Uint8Array>(
    pieces: AsyncIterable<P>,
    { length, release = () => undefined }: BodyOptions = {},
  ): PooledBody {
    return { [Symbol.asyncIterator]: () => this.#pieces(pieces, length), release };
  }

  async *#pieces<P extends string | Uint8Array>(
    pieces: AsyncIterable<P>,
    length: number | undefined,
  ): AsyncGenerator<P, void, undefined> {
    let sent = 0;
    const check = (fits: boolean) => {
      if (length !== undefined && !fits) throw new HttpError(404, wrongLength(length));
    };
    try {
      for await (const piece of pieces) {
        this.#came(piece);
        sent += piece.length;
        check(sent <= (length ?? sent));
        yield piece;
        this.#wait();
      }
      check(sent === length);
    } catch (error) {
      // Waits until the head and earlier pieces have been sent.
      await turn();
      throw brokenOff(error);
    } finally {
      this.end();
    }
  }
}

export interface BodyOptions {
  readonly length?: number;
  /** Returns a sent piece to the pool. */
  readonly release?: ((piece: Uint8Array) => void) | undefined;
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

async function* failing(bytes: Uint8Array, error: unknown): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
  throw error;
}

const clientLeft = () => new DOMException("The client has disconnected", "AbortError");

const wrongLength = (length: number) => `the content does not have the ${length} bytes that it declares`;

/** A short body, and what is known about its bytes. */
export interface Gathered {
  readonly start: Uint8Array;
  readonly body: Uint8Array | PooledBody;
}

const brokenOff = (cause: unknown): HttpError =>
  cause instanceof HttpError
    ? cause
    : new HttpError(404, `the response breaks off: ${(cause as Error).message}`, { cause });
