/**
 * Which values of the configuration are in force. Those who use a value live follow it, and are handed each change; what
 * none of them follows is read at its use. A value that could not be applied waits, with the reason; so does each one
 * that counts from the next start on.
 */
import { type ConfigPath, configKeys } from "./schema.ts";

/** A value that is in the file and not in force. */
export interface WaitingKey {
  /** As it stands in the file. */
  readonly key: string;
  /** Why it could not be applied; undefined: it waits for the next start. */
  readonly reason: string | undefined;
}

/** What became of a change. */
export interface ConfigApplied {
  /** Keys whose new values are in force. */
  readonly applied: readonly string[];
  /** All that wait, whichever change brought them. */
  readonly waiting: readonly WaitingKey[];
}

/** Puts changed values in force; throws or rejects when it cannot: then the former ones go on. */
export type ApplyConfig = (changed: ReadonlySet<ConfigPath>) => unknown;

interface Follower {
  readonly paths: readonly ConfigPath[];
  readonly apply: ApplyConfig;
}

const used = (Object.keys(configKeys) as ConfigPath[]).filter((path) => configKeys[path].applies !== "none");

export class ConfigInForce {
  readonly #value: (path: ConfigPath) => unknown;
  readonly #further: () => readonly string[];
  readonly #nameOf: (path: ConfigPath) => string;
  /** As JSON, by path. */
  readonly #inForce = new Map<ConfigPath, string>();
  readonly #reasons = new Map<ConfigPath, string>();
  readonly #followers = new Set<Follower>();
  /** What waited when listeners were last told, as JSON. */
  #told = "[]";
  readonly #listeners = new Set<(change: ConfigApplied) => void>();

  /** @param value as the file has it now @param nameOf the key by which the file says it @param further keys that wait for the next start, besides */
  constructor(
    value: (path: ConfigPath) => unknown,
    nameOf: (path: ConfigPath) => string,
    further: () => readonly string[] = () => [],
  ) {
    this.#further = further;
    this.#value = value;
    this.#nameOf = nameOf;
    this.take(() => true);
  }

  /** These values have just been read by those who use them. */
  take(isTaken: (path: ConfigPath) => boolean): void {
    for (const path of used.filter(isTaken)) {
      this.#inForce.set(path, this.#written(path));
      this.#reasons.delete(path);
    }
  }

  /** Hands changes of any of these keys to `apply`, until the function that this gives is called. */
  follow(paths: readonly ConfigPath[], apply: ApplyConfig): () => void {
    const follower = { paths, apply };
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }

  /** Tells of each change when it is over, until the function that this gives is called. */
  listen(hear: (change: ConfigApplied) => void): () => void {
    this.#listeners.add(hear);
    return () => void this.#listeners.delete(hear);
  }

  get waiting(): readonly WaitingKey[] {
    const known = used
      .filter((path) => this.#written(path) !== this.#inForce.get(path))
      .map((path) => ({ key: this.#nameOf(path), reason: this.#reasons.get(path) }));
    return [...known, ...this.#further().map((key) => ({ key, reason: undefined }))];
  }

  /** Puts in force what can be now; what failed before is tried again. Not to be called before the last call is over. */
  async apply(): Promise<ConfigApplied> {
    const changed = new Set(
      used.filter((path) => configKeys[path].applies === "live" && this.#written(path) !== this.#inForce.get(path)),
    );
    for (const path of changed) this.#reasons.delete(path);
    for (const { paths, apply } of [...this.#followers]) {
      const own = new Set(paths.filter((path) => changed.has(path)));
      if (own.size === 0) continue;
      try {
        await apply(own);
      } catch (error) {
        for (const path of own) this.#reasons.set(path, (error as Error).message);
      }
    }
    const applied = [...changed].filter((path) => !this.#reasons.has(path));
    for (const path of applied) this.#inForce.set(path, this.#written(path));
    // A value that was put back as it is in force waits no longer.
    for (const path of [...this.#reasons.keys()]) {
      if (this.#written(path) === this.#inForce.get(path)) this.#reasons.delete(path);
    }
    // A key of a later version is known by itself, and as what it stands for.
    const names = new Set(applied.map((path) => this.#nameOf(path)));
    const result = { applied: [...names], waiting: this.waiting };
    const waiting = JSON.stringify(result.waiting);
    if (applied.length > 0 || waiting !== this.#told) {
      this.#told = waiting;
      for (const hear of this.#listeners) hear(result);
    }
    return result;
  }

  #written(path: ConfigPath): string {
    return JSON.stringify(this.#value(path)) ?? "";
  }
}
