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

/**
 * All that places have held since it was opened: what is read as of one moment of that time must be
 * among it. What was answered with success before is all that there may be of a place that nobody
 * has changed since.
 */
export class Window {
  readonly #held: ReadonlyMap<string, string>;
  readonly #seen = new Map<string, Value[]>();

  constructor(held: ReadonlyMap<string, string>) {
    this.#held = new Map(held);
  }

  note(values: Values): void {
    for (const [name, value] of Object.entries(values)) {
      const seen = this.#seen.get(name) ?? [this.#held.get(name)];
      this.#seen.set(name, [...seen, value]);
    }
  }

  /** What was found and never was, or was there all the time and was not found. */
  differences(found: ReadonlyMap<string, string>): string[] {
    return [...new Set([...this.#held.keys(), ...found.keys()])].flatMap((name) => {
      const now = found.get(name);
      const seen = this.#seen.get(name) ?? [this.#held.get(name)];
      if (seen.some((value) => matches(now, value))) return [];
      return [`${name}: ${now ?? "nothing"} is none of ${seen.map((value) => value ?? "nothing").join(", ")}`];
    });
  }
}

const matches = (found: Value, expected: Value) => found === expected || (expected === anything && found !== undefined);

const shown = (values: Values) => JSON.stringify(values, (_, value) => value ?? null);

/**
 * Places by name (a path, a pin, a key, a setting) and what they hold. A change of several is one:
 * after a crash all of it is there, or, when it was never answered with success, nothing of it.
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
  readonly #windows = new Set<Window>();
  /**
   * CIDs that are there though nothing may keep them: stored with success, and no collection has
   * begun since.
   */
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
   * Runs a change of free places. `run` tells whether it was answered with success, or what the
   * answer told; else the change stays open until the next `settle`.
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
    const told = await run();
    if (told === false) return;
    for (const window of this.#windows) if (told !== true) window.note(told);
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

  /**
   * Runs what makes sure that a CID is there, and tells which; it then is until the next collection
   * at least.
   */
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
      const held = this.get(name);
      const now = found.get(name);
      if (this.isSteady(name) && held !== now) wrong.push(`${name}: ${held ?? "nothing"} became ${now ?? "nothing"}`);
    }
    this.#open.clear();
    this.#changing.clear();
    this.#users.clear();
    this.#held.clear();
    for (const [name, value] of found) this.#held.set(name, value);
    return wrong;
  }

  /**
   * Watches what places hold until `close`; what is being changed now may be in any of its states.
   */
  window(): Window & { close(): void } {
    const window = new Window(this.#held);
    for (const { states } of this.#open) for (const state of states) window.note(state);
    this.#windows.add(window);
    return Object.assign(window, { close: () => this.#windows.delete(window) });
  }

  /** Before the first crash: takes what there is. */
  begin(found: ReadonlyMap<string, string>): void {
    for (const [name, value] of found) this.#held.set(name, value);
  }
}
