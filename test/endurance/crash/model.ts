/** A model of what must exist after a crash, derived from the acknowledged changes. */

/** Undefined: the item does not exist. */
export type ItemValue = string | undefined;

/** Stands for a value that only the response contains. */
export const anything = "*";

/** Values of items after a change. */
export type Values = Readonly<Record<string, ItemValue>>;

/** How to read stored content: the command, and the SHA-256 of its output. */
export interface StoredContent {
  readonly command: string;
  /** Path below the CID. */
  readonly below?: string;
  readonly digest: string;
}

interface Change {
  /** The values before the change, after it, and in between. */
  readonly states: readonly Values[];
}

export interface ChangeOptions {
  /** Items that must not change meanwhile. */
  readonly relies?: readonly string[];
  /** An intermediate state in which a crash may leave the items. */
  readonly way?: Values | undefined;
}

/**
 * All values that items have had since the window was opened. A read of that time must return one
 * of them. If nobody has changed an item since, it must have the value that was acknowledged
 * before.
 */
export class Window {
  readonly #values: ReadonlyMap<string, string>;
  readonly #seen = new Map<string, ItemValue[]>();

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = new Map(values);
  }

  note(values: Values): void {
    for (const [name, value] of Object.entries(values)) {
      const seen = this.#seen.get(name) ?? [this.#values.get(name)];
      this.#seen.set(name, [...seen, value]);
    }
  }

  /**
   * Returns items that were found but never existed, and items that existed all the time but were
   * not found.
   */
  differences(found: ReadonlyMap<string, string>): string[] {
    return [...new Set([...this.#values.keys(), ...found.keys()])].flatMap((name) => {
      const now = found.get(name);
      const seen = this.#seen.get(name) ?? [this.#values.get(name)];
      if (seen.some((value) => matches(now, value))) return [];
      return [`${name}: ${now ?? "nothing"} is not among ${seen.map((value) => value ?? "nothing").join(", ")}`];
    });
  }
}

const matches = (found: ItemValue, expected: ItemValue) =>
  found === expected || (expected === anything && found !== undefined);

const shown = (values: Values) => JSON.stringify(values, (_, value) => value ?? null);

/**
 * Items by name (a path, a pin, a key, a setting) and their values. A change of several items is
 * atomic: after a crash, all of it must exist, or, if it was not acknowledged, nothing of it may
 * exist.
 */
export class Model {
  /** Number of acknowledged changes. */
  acknowledged = 0;
  /** Failures without an explanation. */
  readonly faults: string[] = [];
  /** Content that was stored so far, by CID. */
  readonly contents = new Map<string, StoredContent>();
  readonly #values = new Map<string, string>();
  readonly #changing = new Set<string>();
  readonly #users = new Map<string, number>();
  readonly #open = new Set<Change>();
  readonly #windows = new Set<Window>();
  /**
   * CIDs that must exist although no pin protects them: they were stored successfully, and no
   * collection has begun since.
   */
  readonly #loose = new Set<string>();
  #collections = 0;
  #collecting = 0;

  get(name: string): ItemValue {
    return this.#values.get(name);
  }

  /** Returns the names of existing items that no pending change affects. */
  among(prefix: string): string[] {
    return [...this.#values.keys()].filter((name) => name.startsWith(prefix) && this.isSteady(name));
  }

  /** Returns whether no pending change affects the item. */
  isSteady(name: string): boolean {
    return !this.#changing.has(name);
  }

  /** Returns whether no pending change affects the item or relies on it. */
  isFree(name: string): boolean {
    return this.isSteady(name) && !this.#users.has(name);
  }

  /**
   * Runs a change of free items. `run` resolves to whether it succeeded, or to the values in the
   * response. Without success, the change is pending until the next `settle`.
   */
  async change(
    after: Values,
    run: () => Promise<boolean | Values>,
    { relies = [], way = after }: ChangeOptions = {},
  ): Promise<void> {
    const names = Object.keys(after);
    const before = Object.fromEntries(names.map((name) => [name, this.get(name)]));
    const change = { states: [before, after, way] };
    for (const name of names) this.#changing.add(name);
    for (const name of relies) this.#users.set(name, (this.#users.get(name) ?? 0) + 1);
    this.#open.add(change);
    for (const window of this.#windows) for (const state of change.states) window.note(state);
    const outcome = await run();
    if (outcome === false) return;
    for (const window of this.#windows) if (outcome !== true) window.note(outcome);
    for (const [name, value] of Object.entries({ ...after, ...(outcome === true ? {} : outcome) })) {
      if (value === undefined) this.#values.delete(name);
      else this.#values.set(name, value);
      this.#changing.delete(name);
    }
    for (const name of relies) {
      const left = (this.#users.get(name) ?? 1) - 1;
      if (left > 0) this.#users.set(name, left);
      else this.#users.delete(name);
    }
    this.#open.delete(change);
    this.acknowledged += 1;
  }

  /**
   * Runs a call that stores a block, and resolves to its CID. The block must exist until the next
   * collection at least.
   */
  async storing(run: () => Promise<string | undefined>): Promise<void> {
    const before = this.#collections;
    const cid = await run();
    if (cid !== undefined && this.#collecting === 0 && this.#collections === before) this.#loose.add(cid);
  }

  /** Runs a garbage collection. */
  async collecting(run: () => Promise<void>): Promise<void> {
    this.#collections += 1;
    this.#collecting += 1;
    this.#loose.clear();
    await run().finally(() => {
      this.#collecting -= 1;
    });
  }

  /** Returns CIDs that must exist, whether a pin protects them or not. */
  loose(): string[] {
    return [...this.#loose];
  }

  /**
   * Returns the differences between the promised and the found values. From here on the found
   * values count.
   */
  settle(found: ReadonlyMap<string, string>): string[] {
    const wrong = this.faults.splice(0);
    for (const { states } of this.#open) {
      const now = Object.fromEntries(Object.keys(states[0] ?? {}).map((name) => [name, found.get(name)]));
      const is = (values: Values) => Object.entries(values).every(([name, value]) => matches(now[name], value));
      if (!states.some(is)) wrong.push(`half a change: ${shown(now)} is not among ${states.map(shown).join(", ")}`);
    }
    for (const name of new Set([...this.#values.keys(), ...found.keys()])) {
      const promised = this.get(name);
      const now = found.get(name);
      if (this.isSteady(name) && promised !== now)
        wrong.push(`${name}: ${promised ?? "nothing"} became ${now ?? "nothing"}`);
    }
    this.#open.clear();
    this.#changing.clear();
    this.#users.clear();
    this.#values.clear();
    for (const [name, value] of found) this.#values.set(name, value);
    return wrong;
  }

  /**
   * Records the values of items until `close`. An item that is being changed may have any of its
   * states.
   */
  window(): Window & { close(): void } {
    const window = new Window(this.#values);
    for (const { states } of this.#open) for (const state of states) window.note(state);
    this.#windows.add(window);
    return Object.assign(window, { close: () => this.#windows.delete(window) });
  }

  /** Adopts the existing values before the first crash. */
  begin(found: ReadonlyMap<string, string>): void {
    for (const [name, value] of found) this.#values.set(name, value);
  }
}
