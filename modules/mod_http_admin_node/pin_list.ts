/** Caches the list of pins, so that the next page does not read all of them again. */
import type { Node } from "modhost/node";
import type { Pin } from "./types.ts";

/** Milliseconds after which the list is read again, because others pin too. */
const MAX_AGE_MS = 3000;
/** Longer lists are not cached. */
const MAX_CACHED = 200_000;

type Mode = Pin["type"];

interface Read {
  readonly at: number;
  readonly texts: readonly string[];
}

export class PinList {
  readonly #node: Node;
  readonly #read = new Map<Mode, Read>();
  #changes = 0;

  constructor(node: Node) {
    this.#node = node;
  }

  /** Returns the CIDs as text, sorted. */
  async of(mode: Mode): Promise<readonly string[]> {
    const known = this.#read.get(mode);
    if (known !== undefined && performance.now() - known.at < MAX_AGE_MS) return known.texts;
    const before = this.#changes;
    const texts = await Array.fromAsync(this.#node.lowLevel.pins.texts(mode));
    // A list that was read during a change may be incomplete.
    if (before === this.#changes && texts.length <= MAX_CACHED) this.#read.set(mode, { at: performance.now(), texts });
    return texts;
  }

  /** Drops the cached lists, so that the next page shows the change. */
  changed(): void {
    this.#changes += 1;
    this.#read.clear();
  }
}
