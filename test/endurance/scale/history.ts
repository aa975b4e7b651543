/**
 * Compares the responses of hosts with their calls: an item (a path, a pin, a name) is changed and
 * read through all hosts.
 */

/** Undefined: the item does not exist. */
export type HistoryValue = string | undefined;

/** Outcome of a change. `none`: the response was that there is nothing to change. */
export type ChangeOutcome = "done" | "none" | "unknown";

interface Change {
  readonly value: HistoryValue;
  /** Value of the item for a moment during the change. */
  readonly way: HistoryValue;
  readonly begin: number;
  /**
   * Time of the response. Infinity until the response arrives: until then, nobody knows whether the
   * change has happened.
   */
  end: number;
  /** The response was that there was nothing to change. */
  isNone?: boolean;
}

/** Number of the last events that a failure shows. */
const SHOWN = 12;

export class History {
  /** Number of successful changes. */
  acknowledged = 0;
  /** Reads that no order of the changes explains, and failures without an explanation. */
  readonly wrong: string[] = [];
  /** Number of events so far. It orders the beginnings and ends of calls. */
  #now = 0;
  readonly #items = new Map<string, Change[]>();
  readonly #events = new Map<string, string[]>();

  /** Returns the items of a kind that were changed or read. */
  items(prefix = ""): string[] {
    return [...this.#items.keys()].filter((item) => item.startsWith(prefix));
  }

  /**
   * Runs a change, which resolves to its outcome. If it does not succeed or rejects, the change may
   * have happened. `way`: the value that the item may have meanwhile.
   */
  async change(
    host: string,
    item: string,
    value: HistoryValue,
    run: () => Promise<ChangeOutcome>,
    way: HistoryValue = value,
  ): Promise<void> {
    const begin = this.#note(item, `${host} begins to set ${shown(value)}`);
    const change: Change = { value, way, begin, end: Infinity };
    this.#changes(item).push(change);
    const outcome = await run();
    const end = this.#note(item, `${host}, called at ${begin} to set ${shown(value)}: ${outcome}`);
    if (outcome === "unknown") return;
    change.end = end;
    if (outcome === "done") this.acknowledged += 1;
    else change.isNone = true;
  }

  /** Records a change of an item that only the response names: nobody else could know it before. */
  changed(host: string, item: string, value: HistoryValue): void {
    const at = this.#note(item, `${host} has set ${shown(value)}`);
    this.#changes(item).push({ value, way: value, begin: at, end: at });
    this.acknowledged += 1;
  }

  /** Runs a read and checks its result. */
  async read(host: string, item: string, run: () => Promise<HistoryValue>): Promise<HistoryValue> {
    const read = this.reading(host);
    const value = await run();
    read(item, value);
    return value;
  }

  /**
   * Begins a read of many items. The returned function has to be called for each item that it found
   * or did not find.
   */
  reading(host: string): (item: string, value: HistoryValue) => void {
    const begin = this.#tick();
    return (item, value) => {
      const end = this.#note(item, `${host} reads ${shown(value)}, called at ${begin}`);
      if (this.mayHold(item, value, begin, end)) return;
      const events = (this.#events.get(item) ?? []).join("\n    ");
      this.wrong.push(`${item} had the value ${shown(value)} on ${host}, which no order explains:\n    ${events}`);
    };
  }

  fault(text: string): void {
    this.wrong.push(text);
  }

  /** Returns whether a read from `begin` to `end` may have found this value. */
  mayHold(item: string, value: HistoryValue, begin = this.#tick(), end = this.#now): boolean {
    const changes = this.#changes(item);
    return changes.some((change) => {
      if (change.begin > end) return false;
      if (change.way === value && change.end > begin) return true;
      if (change.value !== value || change.isNone === true) return false;
      return !changes.some((later) => later.isNone !== true && later.begin > change.end && later.end < begin);
    });
  }

  /** Call it when no change is running: from now on, each item has the value in `found`. */
  settle(found: ReadonlyMap<string, string>): void {
    const at = this.#tick();
    for (const item of new Set([...this.#items.keys(), ...found.keys()])) {
      const value = found.get(item);
      this.#items.set(item, [{ value, way: value, begin: at, end: at }]);
    }
  }

  #changes(item: string): Change[] {
    const known = this.#items.get(item);
    if (known !== undefined) return known;
    const changes: Change[] = [{ value: undefined, way: undefined, begin: 0, end: 0 }];
    this.#items.set(item, changes);
    return changes;
  }

  #tick(): number {
    this.#now += 1;
    return this.#now;
  }

  #note(item: string, event: string): number {
    const at = this.#tick();
    const events = this.#events.get(item) ?? [];
    this.#events.set(item, [...events.slice(1 - SHOWN), `${at} ${event}`]);
    return at;
  }
}

const shown = (value: HistoryValue) => value ?? "nothing";
