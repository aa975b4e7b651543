/** What must hold after a crash, by what was answered before it. */

/** Undefined: it is not there. */
export type Value = string | undefined;

/** In the place of a value that only the answer tells. */
export const anything = "*";

/** What places hold after a change. */
export type Values = Readonly<Record<string, Value>>;

/** How what was stored is read back: the command, and the SHA-256 of what it gives. */
export interface Content {
  readonly command: string;
  /** Path behind the CID. */
  readonly below?: string;
  readonly digest: string;
}

interface Change {
  /** Before it, after it, and on the way. */
  readonly states: readonly Values[];
}

export interface ChangeOptions {
  /** Steady places that must stay as they are meanwhile. */
  readonly relies?: readonly string[];
  /** A state on the way in which a crash may leave it. */
  readonly way?: Values | undefined;
}

const matches = (found: Value, expected: Value) => found === expected || (expected === anything && found !== undefined);

const shown = (values: Values) => JSON.stringify(values, (_, value) => value ?? null);

/**
 * Places by name (a path, a pin, a key, a setting) and what they hold. A change of several is one: after a crash all of
 * it is there, or, when it was never answered with success, nothing of it.
 */
export class Model {
  /** Changes answered with success. */
  acknowledged = 0;
  /** Failures that nothing explains. */
  readonly faults: string[] = [];
  /** Of what was stored so far, by CID. */
  readonly contents = new Map<string, Content>();
  readonly #held = new Map<string, string>();
  readonly #changing = new Set<string>();
  readonly #users = new Map<string, number>();
  readonly #open = new Set<Change>();
  /** CIDs that are there though nothing may keep them: stored with success, and no collection has begun since. */
  readonly #loose = new Set<string>();
  #collections = 0;
  #collecting = 0;

  get(name: string): Value {
    return this.#held.get(name);
  }

  /** Names of places with something in them that nobody is about to change. */
  among(prefix: string): string[] {
    return [...this.#held.keys()].filter((name) => name.startsWith(prefix) && this.isSteady(name));
  }

  /** Nobody changes it. */
  isSteady(name: string): boolean {
    return !this.#changing.has(name);
  }

  /** Nobody changes it, nor relies on it. */
  isFree(name: string): boolean {
    return this.isSteady(name) && !this.#users.has(name);
  }

  /**
   * Runs a change of free places. `run` tells whether it was answered with success, or what the answer told; else the
   * change stays open until the next `settle`.
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
    const told = await run();
    if (told === false) return;
    for (const [name, value] of Object.entries({ ...after, ...(told === true ? {} : told) })) {
      if (value === undefined) this.#held.delete(name);
      else this.#held.set(name, value);
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

  /** Runs what makes sure that a CID is there, and tells which; it then is until the next collection at least. */
  async storing(run: () => Promise<string | undefined>): Promise<void> {
    const before = this.#collections;
    const cid = await run();
    if (cid !== undefined && this.#collecting === 0 && this.#collections === before) this.#loose.add(cid);
  }

  /** Runs a collection of garbage. */
  async collecting(run: () => Promise<void>): Promise<void> {
    this.#collections += 1;
    this.#collecting += 1;
    this.#loose.clear();
    await run().finally(() => {
      this.#collecting -= 1;
    });
  }

  /** CIDs that must be there, whether anything keeps them or not. */
  loose(): string[] {
    return [...this.#loose];
  }

  /** Differences between what was promised and what there is; from here on that is what is held. */
  settle(found: ReadonlyMap<string, string>): string[] {
    const wrong = this.faults.splice(0);
    for (const { states } of this.#open) {
      const now = Object.fromEntries(Object.keys(states[0] ?? {}).map((name) => [name, found.get(name)]));
      const is = (values: Values) => Object.entries(values).every(([name, value]) => matches(now[name], value));
      if (!states.some(is)) wrong.push(`half a change: ${shown(now)} is none of ${states.map(shown).join(", ")}`);
    }
    for (const name of new Set([...this.#held.keys(), ...found.keys()])) {
      const [held, now] = [this.get(name), found.get(name)];
      if (this.isSteady(name) && held !== now) wrong.push(`${name}: ${held ?? "nothing"} became ${now ?? "nothing"}`);
    }
    this.#open.clear();
    this.#changing.clear();
    this.#users.clear();
    this.#held.clear();
    for (const [name, value] of found) this.#held.set(name, value);
    return wrong;
  }

  /** Before the first crash: takes what there is. */
  begin(found: ReadonlyMap<string, string>): void {
    for (const [name, value] of found) this.#held.set(name, value);
  }
}
