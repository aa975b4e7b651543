import type { OwnedItem } from "../types.ts";

/** Undoes one effect; called once. It may return a promise if that takes time. */
export type Release = () => unknown;

/** Something that a module will do to the host. */
export interface Effect {
  /** ModuleState.holds counts effects by this kind: "hook", "item", "timer", ... */
  readonly kind: string;
  readonly label: string;
  /** The item, if the effect adds one. */
  readonly item?: OwnedItem;
  /** Performs the effect; throws if that is not possible. */
  activate(): Release;
}

/** An effect in the ledger. */
export interface EffectHandle {
  /** Forgets an effect that has ended by itself: there is nothing left to undo. */
  forget(): void;
  /** Undoes the effect before its module is unloaded; a second call does nothing. */
  undo(): unknown;
}

interface EffectRecord {
  readonly effect: Effect;
  release: Release | undefined;
}

/**
 * All effects of one module instance on the host, in order. Until `activate` they are only
 * collected; then they are performed together, and later ones at once.
 */
export class Ledger {
  #records: EffectRecord[] = [];
  #live = false;
  readonly #report: (label: string, error: unknown) => void;

  /** `report` is called with the errors of releases; the other releases still run. */
  constructor(report: (label: string, error: unknown) => void) {
    this.#report = report;
  }

  add(effect: Effect): EffectHandle {
    const record: EffectRecord = { effect, release: this.#live ? effect.activate() : undefined };
    this.#records.push(record);
    return this.#handle(record);
  }

  /**
   * Records an effect that has been performed already: it is undone even if the module is never
   * activated.
   */
  recordRelease(kind: string, label: string, release: Release): EffectHandle {
    const record: EffectRecord = { effect: { kind, label, activate: () => release }, release };
    this.#records.push(record);
    return this.#handle(record);
  }

  /** Performs all collected effects, or none of them if one throws. */
  activate(): void {
    const done: EffectRecord[] = [];
    try {
      for (const record of this.#records) {
        if (record.release !== undefined) continue;
        record.release = record.effect.activate();
        done.push(record);
      }
    } catch (error) {
      for (const record of done.reverse()) {
        this.#release(record);
        record.release = undefined;
      }
      throw error;
    }
    this.#live = true;
  }

  /**
   * Undoes the effects of these kinds, last first; returns the promises of releases that take time.
   */
  take(...kinds: string[]): Promise<unknown>[] {
    const leaving = this.#records.filter(({ effect }) => kinds.includes(effect.kind));
    return this.#releaseAll(leaving).filter((result) => result instanceof Promise);
  }

  /**
   * Undoes all remaining effects, last first, and waits for each; `wait` returns whether it ended
   * in time. Nothing can be added afterwards.
   */
  async close(wait: (work: unknown) => Promise<boolean>): Promise<void> {
    for (let record = this.#records.at(-1); record !== undefined; record = this.#records.at(-1)) {
      const [result] = this.#releaseAll([record]);
      if (!(result instanceof Promise) || (await wait(result))) continue;
      this.#report(record.effect.label, new Error("it took too long; the unload continues without it"));
    }
  }

  /** Returns the items with a label, active or not. */
  items(label: string): OwnedItem[] {
    return this.#records.flatMap(({ effect }) =>
      effect.label === label && effect.item !== undefined ? [effect.item] : [],
    );
  }

  /** Returns the number of effects by kind. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { effect } of this.#records) counts[effect.kind] = (counts[effect.kind] ?? 0) + 1;
    return counts;
  }

  #releaseAll(leaving: readonly EffectRecord[]): unknown[] {
    const gone = new Set(leaving);
    this.#records = this.#records.filter((record) => !gone.has(record));
    return leaving.toReversed().map((record) => this.#release(record));
  }

  #release({ effect, release }: EffectRecord): unknown {
    const failed = (error: unknown) => this.#report(effect.label, error);
    try {
      const result = release?.();
      return isThenable(result) ? Promise.resolve(result).catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  }

  #handle(record: EffectRecord): EffectHandle {
    return {
      forget: () => void this.#remove(record),
      undo: () => (this.#remove(record) ? this.#release(record) : undefined),
    };
  }

  /** Returns false if it was removed before. */
  #remove(record: EffectRecord): boolean {
    const at = this.#records.lastIndexOf(record);
    if (at >= 0) this.#records.splice(at, 1);
    return at >= 0;
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
