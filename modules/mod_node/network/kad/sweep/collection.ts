/**
 * Maintains the keys that the strategy selects for this host's part: collects them if they are
 * missing, and for each cycle.
 */
import type { Division, WorkShares } from "../../../storage/shared/work_shares.ts";
import type { Clock } from "./clock.ts";
import { type Keystore, type SweepKey, sweepKey } from "./keystore.ts";

export interface CollectionDeps {
  readonly keystore: Keystore;
  readonly clock: Clock;
  /**
   * Returns the multihashes to announce by the current configuration; `name` distinguishes one
   * selection from another.
   */
  readonly source: () => { readonly name: string; readonly keys: (signal: AbortSignal) => AsyncIterable<Uint8Array> };
  /** If several hosts share the blocks: divides keys among them by their first byte. */
  readonly shares?: Pick<WorkShares, "division"> | undefined;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
}

/** Milliseconds until a failed collection is tried again, while the previous keys are available. */
const RETRY_AFTER_MS = 5 * 60_000;

export class Collection {
  readonly #deps: CollectionDeps;
  #running: Promise<void> | undefined;
  #division: Division | undefined;
  /** Time in milliseconds since 1970 before which a failed collection is not tried again. */
  #notBefore = 0;

  constructor(deps: CollectionDeps) {
    this.#deps = deps;
  }

  /** Adds new keys that are in this host's part. */
  add(keys: readonly SweepKey[]): void {
    const division = this.#division;
    const isMine = ({ kadId }: SweepKey) => division?.isMine(kadId.subarray(0, 1)) !== false;
    this.#deps.keystore.add(division === undefined ? keys : keys.filter(isMine));
  }

  /**
   * Collects the keys unless they were collected since the given time from the same source. If
   * older keys of that source are available, it does not wait for the collection.
   *
   * @param since milliseconds since 1970
   */
  async renew(since: number): Promise<void> {
    const { keystore, clock, shares, source, signal, warn } = this.#deps;
    this.#division = await shares?.division();
    const { collected } = keystore;
    const from = this.#nameOf(source().name);
    if (collected !== undefined && collected.at >= since && collected.from === from) return;
    if (collected?.from !== from) return this.collect();
    if (clock.now() < this.#notBefore) return;
    this.collect().catch((error: Error) => {
      this.#notBefore = clock.now() + RETRY_AFTER_MS;
      if (!signal.aborted) warn(`cannot collect the keys to announce again: ${error.message}`);
    });
  }

  /** Collects the keys now, or joins a running collection. */
  collect(): Promise<void> {
    this.#running ??= this.#collect().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  async #collect(): Promise<void> {
    const { keystore, clock, source, shares, signal } = this.#deps;
    this.#division = await shares?.division();
    const { name, keys } = source();
    const about = { at: clock.now(), from: this.#nameOf(name) };
    await keystore.collect(this.#own(keys(signal)), about);
  }

  async *#own(multihashes: AsyncIterable<Uint8Array>): AsyncGenerator<SweepKey, void, undefined> {
    const { signal } = this.#deps;
    const division = this.#division;
    for await (const multihash of multihashes) {
      signal.throwIfAborted();
      const key = sweepKey(multihash);
      if (division?.isMine(key.kadId.subarray(0, 1)) !== false) yield key;
    }
  }

  #nameOf(source: string): string {
    const division = this.#division;
    return division === undefined ? source : `${source} of ${division.own} among ${division.members.join(",")}`;
  }
}
