/** How blocks are read for one answer: from whom, and how long that may take. */
import { setImmediate as turn } from "node:timers/promises";
import { Lending, type NodeModule, type ReadBlock, readSoon } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import type { HttpRequest, PooledBody } from "../../core/types.ts";
import { Refusal } from "./errors/refusal.ts";
import type { DnsLinks } from "./hosts/dns_links.ts";
import type { PathBlocks } from "./path_blocks.ts";
import type { GatewaySettings } from "./settings.ts";

/**
 * Blocks that are read for one answer without a byte of it: graphs of few blocks have more paths than anybody can follow, and
 * may lead to nothing. More than any honest path or file needs.
 */
const MAX_FRUITLESS_BLOCKS = 8192;

/** Shorter blocks have no buffer of the pool, and shorter parts of others are copied. */
const MIN_POOLED_BYTES = 16 * 1024;

type Buffers = NodeModule["lowLevel"]["blocks"]["buffers"];

export interface ReadingDeps extends Pick<GatewaySettings, "stallTime" | "totalTime"> {
  readonly offline: boolean;
  /** The client waits no more: without a signal, which costs more. */
  readonly isGone: () => boolean;
  readonly blocks: PathBlocks;
  readonly links: DnsLinks;
}

export class Reading {
  /** Nobody else is asked for blocks and names. */
  readonly offline: boolean;
  /** Aborts when nobody waits any more, and when it takes too long; undefined where everything is on this machine. */
  readonly signal: AbortSignal | undefined;
  /** Where domains lead. */
  readonly links: DnsLinks;
  readonly #node: NodeModule;
  readonly #blocks: PathBlocks;
  readonly #isGone: () => boolean;
  // Most requests need only some of them.
  #read: ReadBlock | undefined;
  #readLeaf: ReadBlock | undefined;
  #readPath: ReadBlock | undefined;
  /** Blocks since the last bytes. */
  #fruitless = 0;
  readonly #stallTime: number;
  readonly #until: number;
  #late: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lending: Lending | undefined;
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

  /** As `read`, for blocks that go to the client, into arrays of `buffers`: who has one may give it back. */
  get readLeaf(): ReadBlock {
    this.#readLeaf ??= this.#reader(this.buffers);
    return this.#readLeaf;
  }

  /** Those of `readLeaf`. */
  get buffers(): Buffers {
    return this.#node.lowLevel.blocks.buffers;
  }

  /** For blocks that paths lead through; those that have no names are as by `readLeaf`. */
  get readPath(): ReadBlock {
    this.#readPath ??= this.#blocks.reader(this);
    return this.#readPath;
  }

  #reader(buffers: Buffers | undefined): ReadBlock {
    const { signal, offline } = this;
    return this.#bounded(this.#node.lowLevel.reader({ signal, offline, nameless: true, buffers }));
  }

  /** What goes to the client passes through it: clients that are slow hold little together. */
  get lending(): Lending {
    if (this.#lending === undefined) {
      this.#lending = new Lending({
        release: (piece) => this.buffers.release(piece),
        waiting: (isWaiting) => (isWaiting ? clearTimeout(this.#timer) : this.#wait()),
      });
      if (this.#isOver) this.#lending.end();
    }
    return this.#lending;
  }

  /** The client has the answer, or has left. */
  over(): void {
    this.#isOver = true;
    this.#lending?.end();
  }

  /** What is read in vain ends, also where all blocks are on this machine. */
  #bounded(read: ReadBlock): ReadBlock {
    // Not async: a promise of its own for each of very many blocks costs more than the rest of this.
    const refused = (): Promise<never> | undefined => {
      if (this.#isGone()) return Promise.reject(clientLeft());
      this.#fruitless += 1;
      if (this.#fruitless <= MAX_FRUITLESS_BLOCKS) return undefined;
      return Promise.reject(new Refusal(404, `${MAX_FRUITLESS_BLOCKS} blocks of the content have no bytes of it`));
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

  /** Bytes are here: nobody else is waited for meanwhile, however long the client takes for them. @throws {HttpError} 408 */
  #came(piece: string | Uint8Array): void {
    if (performance.now() > this.#until) throw new HttpError(408, "The answer has taken longer than it may");
    clearTimeout(this.#timer);
    if (piece.length > 0) this.#fruitless = 0;
  }

  /** From now on the next bytes are waited for. */
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
    this.#late?.abort(new DOMException("The next bytes did not come in time", "TimeoutError"));
  }

  /** It was given up: the bytes did not come in time. */
  get isLate(): boolean {
    return this.#late?.signal.aborted === true;
  }

  /** The answer is complete, or will never be. */
  end(): void {
    clearTimeout(this.#timer);
    this.#late = undefined;
  }

  /** The bytes of an answer that is short, part of a block in the pool: as they are, or a copy where they would hold far more. */
  few(bytes: Uint8Array): Gathered {
    this.#came(bytes);
    const body = bytes.length < MIN_POOLED_BYTES ? undefined : this.lent(bytes);
    if (body !== undefined) return { start: bytes, body };
    const copy = bytes.slice();
    this.buffers.release(bytes);
    return { start: copy, body: copy };
  }

  /** The body of an answer that is all here, whose block goes back to the pool; undefined where too much is lent already. */
  lent(bytes: Uint8Array): Uint8Array | PooledBody | undefined {
    const { lending } = this;
    if (!lending.lend(bytes)) return undefined;
    this.end();
    if (bytes.length < MIN_POOLED_BYTES) return bytes;
    return { whole: bytes, [Symbol.asyncIterator]: () => only(bytes), release: (piece) => lending.release(piece) };
  }

  /**
   * The `length` bytes of an answer that is short, in one piece; where some are missing, as a body that breaks off after those
   * before them. Rejects where the first are missing. `release` takes back a piece.
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
   * The pieces of a body; `length` is that of all of them, where the answer says it. When they fail the answer is under way:
   * the connection breaks off, so that nobody takes it for whole. That content is not all here, or not as long as it
   * says, is no fault of this server.
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
      // What has come so far is sent first, and so is the head.
      await turn();
      throw brokenOff(error);
    } finally {
      this.end();
    }
  }
}

export interface BodyOptions {
  readonly length?: number;
  /** Takes back a piece that was sent. */
  readonly release?: ((piece: Uint8Array) => void) | undefined;
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}

async function* failing(bytes: Uint8Array, error: unknown): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
  throw error;
}

const clientLeft = () => new DOMException("The client waits no more", "AbortError");

const wrongLength = (length: number) => `the content has not the ${length} bytes that it says`;

/** A short body, and what is known of its bytes. */
export interface Gathered {
  readonly start: Uint8Array;
  readonly body: Uint8Array | PooledBody;
}

const brokenOff = (cause: unknown): HttpError =>
  cause instanceof HttpError
    ? cause
    : new HttpError(404, `the answer breaks off: ${(cause as Error).message}`, { cause });
