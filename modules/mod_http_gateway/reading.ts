/** How blocks are read for one answer: from whom, and how long that may take. */
import { setImmediate as turn } from "node:timers/promises";
import type { NodeModule, ReadBlock } from "modhost/node";
import { HttpError } from "../../core/index.ts";
import type { HttpRequest, PooledBody } from "../../core/types.ts";
import type { PathBlocks } from "./path_blocks.ts";
import type { GatewaySettings } from "./settings.ts";

export interface ReadingDeps extends Pick<GatewaySettings, "stallTime" | "totalTime"> {
  readonly offline: boolean;
  readonly blocks: PathBlocks;
}

export class Reading {
  /** Nobody else is asked for blocks and names. */
  readonly offline: boolean;
  /** Aborts when nobody waits any more, and when it takes too long; undefined where everything is on this machine. */
  readonly signal: AbortSignal | undefined;
  readonly read: ReadBlock;
  /** For blocks that paths lead through. */
  readonly readPath: ReadBlock;
  readonly #node: NodeModule;
  readonly #stallTime: number;
  readonly #until: number;
  #late: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(node: NodeModule, request: HttpRequest, { stallTime, totalTime, offline, blocks }: ReadingDeps) {
    this.#node = node;
    this.offline = offline;
    this.#stallTime = stallTime;
    this.#until = totalTime === 0 ? Number.POSITIVE_INFINITY : performance.now() + totalTime;
    if (!offline) {
      this.#late = new AbortController();
      this.signal = AbortSignal.any([request.signal, this.#late.signal]);
      this.moved();
    }
    this.read = node.lowLevel.reader({ signal: this.signal, offline, nameless: true });
    this.readPath = blocks.reader(this.read);
  }

  /** A reader whose blocks are given back by `release`. */
  pooled(): { readonly read: ReadBlock; readonly buffers: NodeModule["lowLevel"]["blocks"]["buffers"] } {
    const { buffers } = this.#node.lowLevel.blocks;
    return {
      read: this.#node.lowLevel.reader({ signal: this.signal, offline: this.offline, nameless: true, buffers }),
      buffers,
    };
  }

  /** Bytes have come: the wait begins anew. */
  moved(): void {
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

  /** The answer is complete, or will never be. */
  end(): void {
    clearTimeout(this.#timer);
    this.#late = undefined;
  }

  /**
   * The pieces of a body. When they fail the answer is under way: the connection breaks off, so that nobody takes it for
   * whole. That the content is not all here is no fault of this server.
   */
  body<P extends string | Uint8Array>(
    pieces: AsyncIterable<P>,
    release: (piece: Uint8Array) => void = () => undefined,
  ): PooledBody {
    return { [Symbol.asyncIterator]: () => this.#pieces(pieces), release };
  }

  async *#pieces<P extends string | Uint8Array>(pieces: AsyncIterable<P>): AsyncGenerator<P, void, undefined> {
    try {
      for await (const piece of pieces) {
        if (performance.now() > this.#until) throw new HttpError(408, "The answer has taken longer than it may");
        this.moved();
        yield piece;
      }
    } catch (error) {
      // What has come so far is sent first, and so is the head.
      await turn();
      throw brokenOff(error);
    } finally {
      this.end();
    }
  }
}

const brokenOff = (cause: unknown): HttpError =>
  cause instanceof HttpError
    ? cause
    : new HttpError(404, `the answer breaks off: ${(cause as Error).message}`, { cause });
