import type { OwnedItem } from "../types.ts";

/** Undoes one effect; called once. It may return a promise for what takes time. */
export type Release = () => unknown;

/** Something a module does to the host, not yet done. */
export interface Effect {
  /** Counted by kind in ModuleState.holds: "hook", "item", "timer", ... */
  readonly kind: string;
  readonly label: string;
  /** Of an item: itself. */
  readonly item?: OwnedItem;
  /** Does it; throws when it cannot be done. */
  activate(): Release;
}

/** An effect in the ledger. */
export interface Entry {
  /** The effect has ended by itself: there is nothing left to undo. */
  forget(): void;
  /** Undoes it before its module leaves; a second time does nothing. */
  undo(): unknown;
}

interface Held {
  readonly effect: Effect;
  release: Release | undefined;
}

/**
 * All that one module instance has done to the host, in order. Until `activate` effects are only collected; then they
 * are done together, and later ones at once.
 */
export class Ledger {
  #held: Held[] = [];
  #live = false;
  readonly #report: (label: string, error: unknown) => void;

  /** `report` hears of releases that fail; they stop no other. */
  constructor(report: (label: string, error: unknown) => void) {
    this.#report = report;
  }

  add(effect: Effect): Entry {
    const held: Held = { effect, release: this.#live ? effect.activate() : undefined };
    this.#held.push(held);
    return this.#entry(held);
  }

  /** Records what is done already: it is undone even when the module never comes to life. */
  hold(kind: string, label: string, release: Release): Entry {
    const held: Held = { effect: { kind, label, activate: () => release }, release };
    this.#held.push(held);
    return this.#entry(held);
  }

  /** Does all that was collected, or, when one effect throws, nothing. */
  activate(): void {
    const done: Held[] = [];
    try {
      for (const held of this.#held) {
        if (held.release !== undefined) continue;
        held.release = held.effect.activate();
        done.push(held);
      }
    } catch (error) {
      for (const held of done.reverse()) {
        this.#release(held);
        held.release = undefined;
      }
      throw error;
    }
    this.#live = true;
  }

  /** Undoes the effects of these kinds, last first; the promises are of releases that need time. */
  take(...kinds: string[]): Promise<unknown>[] {
    const leaving = this.#held.filter(({ effect }) => kinds.includes(effect.kind));
    return this.#releaseAll(leaving).filter((result) => result instanceof Promise);
  }

  /**
   * Undoes the rest, last first, and waits for each: `wait` tells whether it ended in time. Nothing can be added
   * afterwards.
   */
  async close(wait: (work: unknown) => Promise<boolean>): Promise<void> {
    for (let held = this.#held.at(-1); held !== undefined; held = this.#held.at(-1)) {
      const [result] = this.#releaseAll([held]);
      if (!(result instanceof Promise) || (await wait(result))) continue;
      this.#report(held.effect.label, new Error("it took too long; going on without it"));
    }
  }

  /** Items with a label, active or not. */
  items(label: string): OwnedItem[] {
    return this.#held.flatMap(({ effect }) =>
      effect.label === label && effect.item !== undefined ? [effect.item] : [],
    );
  }

  /** Number of effects by kind. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { effect } of this.#held) counts[effect.kind] = (counts[effect.kind] ?? 0) + 1;
    return counts;
  }

  #releaseAll(leaving: readonly Held[]): unknown[] {
    const gone = new Set(leaving);
    this.#held = this.#held.filter((held) => !gone.has(held));
    return leaving.toReversed().map((held) => this.#release(held));
  }

  #release({ effect, release }: Held): unknown {
    const failed = (error: unknown) => this.#report(effect.label, error);
    try {
      const result = release?.();
      return isThenable(result) ? Promise.resolve(result).catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  }

  #entry(held: Held): Entry {
    return {
      forget: () => void this.#remove(held),
      undo: () => (this.#remove(held) ? this.#release(held) : undefined),
    };
  }

  /** False where it was gone already. */
  #remove(held: Held): boolean {
    const at = this.#held.lastIndexOf(held);
    if (at >= 0) this.#held.splice(at, 1);
    return at >= 0;
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
