/**
 * Opens nodes for callers that cannot wait until a slow open is complete: the open continues in the
 * background, and the next call for the same key takes it over.
 */

import { settledWithin } from "../util/async/within.ts";
import type { Node } from "./types.ts";

interface Closeable {
  close(): Promise<unknown>;
}

interface PendingOpen<T> {
  readonly opened: Promise<T>;
  /** Abandons the open if no caller takes it over in time. */
  abandonTimer?: NodeJS.Timeout | undefined;
}

export interface OpenWithin<T> {
  /** Identifies the node: calls with the same key share one open. */
  readonly key: string;
  readonly open: () => Promise<T>;
  /**
   * Milliseconds that the first caller waits, and that a caller waits who takes over a pending
   * open.
   */
  readonly firstMs: number;
  readonly laterMs: number;
}

/** Longer than repeating callers pause between two calls. */
const RETAIN_MS = 120_000;

export class PendingOpens<T extends Closeable> {
  readonly #retainMs: number;
  readonly #all = new Map<string, PendingOpen<T>>();

  /** A node that no caller requests again within `retainMs` is closed as soon as it is open. */
  constructor(retainMs = RETAIN_MS) {
    this.#retainMs = retainMs;
  }

  /**
   * Resolves to the opened node, which then belongs to the caller; resolves to undefined if opening
   * takes longer. @throws what `open` throws
   */
  async within({ key, open, firstMs, laterMs }: OpenWithin<T>): Promise<T | undefined> {
    const known = this.#all.get(key);
    clearTimeout(known?.abandonTimer);
    const opening: PendingOpen<T> = known ?? { opened: open() };
    this.#all.set(key, opening);
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    await settledWithin(known === undefined ? firstMs : laterMs, opening.opened.then(over, over));
    // Another caller may have taken the node meanwhile.
    if (this.#all.get(key) !== opening) return this.within({ key, open, firstMs, laterMs });
    if (isOver) {
      this.#all.delete(key);
      return opening.opened;
    }
    clearTimeout(opening.abandonTimer);
    opening.abandonTimer = setTimeout(() => this.#abandon(key, opening), this.#retainMs).unref();
    return undefined;
  }

  #abandon(key: string, { opened }: PendingOpen<T>): void {
    this.#all.delete(key);
    opened.then((unwanted) => unwanted.close()).catch(() => undefined);
  }
}

/** The pending opens of this process. */
export const pendingOpens = new PendingOpens<Node>();
