import { failure } from "../../util/errors.ts";
import {
  compareAndSet,
  compareKeys,
  inRange,
  keyBytes,
  OverlayTransaction,
  runSynchronously,
} from "./overlay_transaction.ts";
import type { MetadataReader, MetadataStore } from "./store.ts";

/** Creates metadata in memory only, for calculations that store nothing and for tests. */
export function memoryMetadata(): MetadataStore {
  const entries = new Map<string, Uint8Array>();
  let closed = false;

  const reader: MetadataReader = {
    get(key) {
      keyBytes(key);
      return entries.get(key);
    },
    has: (key) => reader.get(key) !== undefined,
    range: ({ limit, ...bounds } = {}) =>
      [...entries]
        .filter(([key]) => inRange(key, bounds))
        .sort(([a], [b]) => compareKeys(a, b))
        .slice(0, limit),
  };
  function open(): MetadataReader {
    if (closed) throw failure("STORE_CLOSED");
    return reader;
  }

  const store: MetadataStore = {
    get: async (key) => open().get(key),
    has: async (key) => open().has(key),
    async *range(range) {
      for (const entry of open().range(range)) {
        open();
        yield entry;
      }
    },
    keys: async (page) => Array.from(open().range(page), ([key]) => key),
    async transaction(run) {
      const overlay = new OverlayTransaction(open());
      const result = runSynchronously(run, overlay);
      for (const [key, value] of overlay.changes) {
        if (value === undefined) entries.delete(key);
        else entries.set(key, value);
      }
      return result;
    },
    compareAndSet: (key, expected, value) => store.transaction(compareAndSet(key, expected, value)),
    async close() {
      closed = true;
      entries.clear();
    },
  };
  return store;
}
