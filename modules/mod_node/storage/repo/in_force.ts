/**
 * Tracks which values of the configuration are applied. Users of a live value follow it and receive
 * each change. Values that nobody follows are read when they are used. A value that could not be
 * applied waits, with the reason. Values that take effect at the next start wait as well.
 */
import { type ConfigPath, configKeys } from "./schema.ts";

/** A value in the file that is not applied yet. */
export interface WaitingKey {
  /** The key as it is named in the file. */
  readonly key: string;
  /** Why the value could not be applied; undefined when it waits for the next start. */
  readonly reason: string | undefined;
}

/** The result of a change. */
export interface ConfigApplied {
  /** Keys whose new values are applied. */
  readonly applied: readonly string[];
  /** All waiting keys, whichever change set them. */
  readonly waiting: readonly WaitingKey[];
}

/** Applies changed values. Throws or rejects when it cannot; the previous values then stay. */
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
  /** Applied values as JSON, by path. */
  readonly #inForce = new Map<ConfigPath, string>();
  readonly #reasons = new Map<ConfigPath, string>();
  readonly #followers = new Set<Follower>();
  /** The waiting keys at the last call of the listeners, as JSON. */
  #lastWaiting = "[]";
  readonly #listeners = new Set<(change: ConfigApplied) => void>();

  /**
   * @param value returns the current value in the file
   * @param nameOf returns the key that sets the value in the file
   * @param further returns additional keys that wait for the next start
   */
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

  /** Records that these values have just been read by their users and are applied. */
  take(isTaken: (path: ConfigPath) => boolean): void {
    for (const path of used.filter(isTaken)) {
      this.#inForce.set(path, this.#written(path));
      this.#reasons.delete(path);
    }
  }

  /** Passes changes of any of these keys to `apply`, until the returned function is called. */
  follow(paths: readonly ConfigPath[], apply: ApplyConfig): () => void {
    const follower = { paths, apply };
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }

  /** Calls `listener` after each change, until the returned function is called. */
  listen(listener: (change: ConfigApplied) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get waiting(): readonly WaitingKey[] {
    const known = used
      .filter((path) => this.#written(path) !== this.#inForce.get(path))
      .map((path) => ({ key: this.#nameOf(path), reason: this.#reasons.get(path) }));
    return [...known, ...this.#further().map((key) => ({ key, reason: undefined }))];
  }

  /**
   * Applies the values that can be applied now, and tries failed ones again. Must not be called
   * before the previous call has ended.
   */
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
    // A value that was changed back to the applied one no longer waits.
    for (const path of [...this.#reasons.keys()]) {
      if (this.#written(path) === this.#inForce.get(path)) this.#reasons.delete(path);
    }
    // The value of a later key is applied twice: under its own path, and under the path that it
    // sets.
    const names = new Set(applied.map((path) => this.#nameOf(path)));
    const result = { applied: [...names], waiting: this.waiting };
    const waiting = JSON.stringify(result.waiting);
    if (applied.length > 0 || waiting !== this.#lastWaiting) {
      this.#lastWaiting = waiting;
      for (const listener of this.#listeners) listener(result);
    }
    return result;
  }

  #written(path: ConfigPath): string {
    return JSON.stringify(this.#value(path)) ?? "";
  }
}
