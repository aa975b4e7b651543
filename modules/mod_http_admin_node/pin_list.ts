/** The pins of the node as a list that pages are cut from, so that the next page need not read all of them again. */
import type { Node } from "modhost/node";
import type { Pin } from "./types.ts";

/** Milliseconds after which it is read again: others pin, too. */
const MAX_AGE_MS = 3000;
/** Longer lists are not kept. */
const MAX_KEPT = 200_000;

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

  /** Texts of the CIDs, sorted. */
  async of(mode: Mode): Promise<readonly string[]> {
    const known = this.#read.get(mode);
    if (known !== undefined && performance.now() - known.at < MAX_AGE_MS) return known.texts;
    const before = this.#changes;
    const texts = await Array.fromAsync(this.#node.lowLevel.pins.texts(mode));
    // What was read while something changed may lack it.
    if (before === this.#changes && texts.length <= MAX_KEPT) this.#read.set(mode, { at: performance.now(), texts });
    return texts;
  }

  /** The next page shows what has changed. */
  changed(): void {
    this.#changes += 1;
    this.#read.clear();
  }
}
