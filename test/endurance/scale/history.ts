/**
 * What hosts answered, held against what they were asked: a place (a path, a pin, a name) is
 * changed and read through all of them.
 */

/** Undefined: nothing is there. */
export type Value = string | undefined;

/** Of a change. `none`: it was answered that there is nothing to change. */
export type Outcome = "done" | "none" | "unknown";

interface Change {
  readonly value: Value;
  /** What is there for a moment while the change is under way. */
  readonly way: Value;
  readonly begin: number;
  /**
   * Infinity while it is under way, and for good when its answer never came: it may have taken
   * place or not.
   */
  end: number;
  /** It was answered that there was nothing to change. */
  isNone?: boolean;
}

/** How many of the last events a failure shows. */
const SHOWN = 12;

export class History {
  /** Changes answered with success. */
  acknowledged = 0;
  /** What no order of the changes explains, and failures that nothing does. */
  readonly wrong: string[] = [];
  /** Events so far, which order all that is begun and answered. */
  #now = 0;
  readonly #places = new Map<string, Change[]>();
  readonly #events = new Map<string, string[]>();

  /** Places that were changed or read, of this kind. */
  places(prefix = ""): string[] {
    return [...this.#places.keys()].filter((place) => place.startsWith(prefix));
  }

  /**
   * Runs a change; it resolves with what was answered. Unless that is success, and when it rejects,
   * the change may have taken place. `way`: what the place may hold meanwhile.
   */
  async change(
    host: string,
    place: string,
    value: Value,
    run: () => Promise<Outcome>,
    way: Value = value,
  ): Promise<void> {
    const begin = this.#note(place, `${host} begins to set ${shown(value)}`);
    const change: Change = { value, way, begin, end: Infinity };
    this.#changes(place).push(change);
    const outcome = await run();
    const end = this.#note(place, `${host}, asked at ${begin} to set ${shown(value)}: ${outcome}`);
    if (outcome === "unknown") return;
    change.end = end;
    if (outcome === "done") this.acknowledged += 1;
    else change.isNone = true;
  }

  /** A change whose place only its answer names, which nobody else could know before. */
  changed(host: string, place: string, value: Value): void {
    const at = this.#note(place, `${host} has set ${shown(value)}`);
    this.#changes(place).push({ value, way: value, begin: at, end: at });
    this.acknowledged += 1;
  }

  /** Runs a read and judges what it gives. */
  async read(host: string, place: string, run: () => Promise<Value>): Promise<Value> {
    const read = this.reading(host);
    const value = await run();
    read(place, value);
    return value;
  }

  /**
   * Begins a read of many places; what is given is called with each that it found or did not find.
   */
  reading(host: string): (place: string, value: Value) => void {
    const begin = this.#tick();
    return (place, value) => {
      const end = this.#note(place, `${host} reads ${shown(value)}, asked at ${begin}`);
      if (this.mayHold(place, value, begin, end)) return;
      const events = (this.#events.get(place) ?? []).join("\n    ");
      this.wrong.push(`${place} held ${shown(value)} on ${host}, which no order explains:\n    ${events}`);
    };
  }

  fault(text: string): void {
    this.wrong.push(text);
  }

  /** Whether a read from `begin` to `end` may have found this. */
  mayHold(place: string, value: Value, begin = this.#tick(), end = this.#now): boolean {
    const changes = this.#changes(place);
    return changes.some((change) => {
      if (change.begin > end) return false;
      if (change.way === value && change.end > begin) return true;
      if (change.value !== value || change.isNone === true) return false;
      return !changes.some((later) => later.isNone !== true && later.begin > change.end && later.end < begin);
    });
  }

  /** From here on nothing is under way: places hold what was found. */
  settle(found: ReadonlyMap<string, string>): void {
    const at = this.#tick();
    for (const place of new Set([...this.#places.keys(), ...found.keys()])) {
      const value = found.get(place);
      this.#places.set(place, [{ value, way: value, begin: at, end: at }]);
    }
  }

  #changes(place: string): Change[] {
    const known = this.#places.get(place);
    if (known !== undefined) return known;
    const changes: Change[] = [{ value: undefined, way: undefined, begin: 0, end: 0 }];
    this.#places.set(place, changes);
    return changes;
  }

  #tick(): number {
    this.#now += 1;
    return this.#now;
  }

  #note(place: string, event: string): number {
    const at = this.#tick();
    const events = this.#events.get(place) ?? [];
    this.#events.set(place, [...events.slice(1 - SHOWN), `${at} ${event}`]);
    return at;
  }
}

const shown = (value: Value) => value ?? "nothing";
