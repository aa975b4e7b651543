/** Changes on top of a reader: the transactions of both metadata stores. */
import { Buffer } from "node:buffer";
import { failure } from "../../util/errors.ts";
import type { KeyRange, MetadataReader, MetadataWriter } from "./store.ts";

/** Maximum bytes of a key, a limit of LMDB. */
const MAX_KEY = 1978;

/**
 * Returns the bytes of a key.
 * @throws NodeError for a key that no store accepts
 */
export function keyBytes(key: string): Buffer {
  const bytes = Buffer.from(key);
  if (bytes.length === 0 || bytes.length > MAX_KEY || !key.isWellFormed()) {
    throw failure("METADATA_KEY_INVALID", {
      reason: `a metadata key is 1 to ${MAX_KEY} bytes of well-formed text, not ${JSON.stringify(key)}`,
    });
  }
  return bytes;
}

/**
 * Compares keys in the order of `range`. JavaScript orders strings differently beyond the basic
 * multilingual plane.
 */
export const compareKeys = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

export const inRange = (key: string, { prefix = "", after }: KeyRange): boolean =>
  key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0);

type Entry = readonly [key: string, value: Uint8Array];

/**
 * A transaction that reads unchanged keys from `base` and collects changes until the caller applies
 * them.
 */
export class OverlayTransaction implements MetadataWriter {
  readonly base: MetadataReader;
  /** A value of undefined is a deletion. */
  readonly changes = new Map<string, Uint8Array | undefined>();

  constructor(base: MetadataReader) {
    this.base = base;
  }

  get(key: string): Uint8Array | undefined {
    return this.changes.has(key) ? this.changes.get(key) : this.base.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  put(key: string, value: Uint8Array): void {
    keyBytes(key);
    // The caller may reuse its array before the value is written.
    this.changes.set(key, Uint8Array.from(value));
  }

  delete(key: string): boolean {
    const had = this.has(key);
    if (had) this.changes.set(key, undefined);
    return had;
  }

  /** Adds the changes of another transaction that was made on top of this one. */
  apply(overlay: OverlayTransaction): void {
    for (const [key, value] of overlay.changes) this.changes.set(key, value);
  }

  *range(range: KeyRange = {}): Iterable<Entry> {
    const { limit = Number.POSITIVE_INFINITY, ...bounds } = range;
    const changed = [...this.changes].filter(([key]) => inRange(key, bounds)).sort(([a], [b]) => compareKeys(a, b));
    let left = limit;
    for (const [key, value] of merge(this.base.range(bounds), changed)) {
      if (left <= 0) return;
      if (value === undefined) continue;
      left -= 1;
      yield [key, value];
    }
  }
}

type Change = readonly [key: string, value: Uint8Array | undefined];

/** Merges two sorted sequences. For keys in both, the second one wins. */
function* merge(base: Iterable<Entry>, changes: readonly Change[]): Iterable<Change> {
  let at = 0;
  for (const entry of base) {
    let order = -1;
    for (let change = changes[at]; change !== undefined; change = changes[at]) {
      order = compareKeys(entry[0], change[0]);
      if (order < 0) break;
      yield change;
      at += 1;
      if (order === 0) break;
    }
    if (order !== 0) yield entry;
  }
  yield* changes.slice(at);
}

/**
 * Runs the function of a transaction.
 * @throws TypeError when the function is asynchronous: a transaction must be one synchronous step
 */
export function runSynchronously<T>(run: (writer: MetadataWriter) => T, overlay: OverlayTransaction): T {
  const result = run(overlay);
  if (result instanceof Promise) {
    result.catch(() => {});
    throw new TypeError("a metadata transaction is synchronous: it must not return a promise");
  }
  return result;
}

/** Returns the transaction that implements `MetadataStore.compareAndSet`. */
export function compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined) {
  return (writer: MetadataWriter): boolean => {
    const current = writer.get(key);
    const same =
      expected === undefined || current === undefined ? expected === current : Buffer.compare(current, expected) === 0;
    if (!same) return false;
    if (value === undefined) writer.delete(key);
    else writer.put(key, value);
    return true;
  };
}
