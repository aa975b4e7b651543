/** Nodes that take long to open, for those who cannot wait for so long: it goes on, and whoever asks again takes it up. */
import type { Node } from "./types.ts";
import { settledWithin } from "./util/async/within.ts";

interface Closeable {
  close(): Promise<unknown>;
}

interface Opening<T> {
  readonly opened: Promise<T>;
  /** Gives it up when nobody asks for it any more. */
  giveUp?: NodeJS.Timeout | undefined;
}

export interface OpenWithin<T> {
  /** What is opened: calls with the same key mean the same. */
  readonly key: string;
  readonly open: () => Promise<T>;
  /** Milliseconds for which a caller waits who is the first to ask, and one who asks again. */
  readonly firstMs: number;
  readonly laterMs: number;
}

/** Longer than those who ask again and again leave between two calls. */
const KEPT_MS = 120_000;

export class Openings<T extends Closeable> {
  readonly #keptMs: number;
  readonly #all = new Map<string, Opening<T>>();

  /** What nobody asks for within `keptMs` is closed as soon as it is open. */
  constructor(keptMs = KEPT_MS) {
    this.#keptMs = keptMs;
  }

  /** What was opened, which is the caller's from then on; undefined when that takes longer. @throws what `open` throws */
  async within({ key, open, firstMs, laterMs }: OpenWithin<T>): Promise<T | undefined> {
    const known = this.#all.get(key);
    clearTimeout(known?.giveUp);
    const opening: Opening<T> = known ?? { opened: open() };
    this.#all.set(key, opening);
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    await settledWithin(known === undefined ? firstMs : laterMs, opening.opened.then(over, over));
    // Somebody else may have taken it meanwhile.
    if (this.#all.get(key) !== opening) return this.within({ key, open, firstMs, laterMs });
    if (isOver) {
      this.#all.delete(key);
      return opening.opened;
    }
    clearTimeout(opening.giveUp);
    opening.giveUp = setTimeout(() => this.#giveUp(key, opening), this.#keptMs).unref();
    return undefined;
  }

  #giveUp(key: string, { opened }: Opening<T>): void {
    this.#all.delete(key);
    opened.then((unwanted) => unwanted.close()).catch(() => undefined);
  }
}

/** Those of this process. */
export const openings = new Openings<Node>();
