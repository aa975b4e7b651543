/** Makes a part of the metadata look like a store of its own. */
import type { KeyRange, MetadataStore, MetadataWriter } from "./store.ts";

const inner = (prefix: string, { prefix: below = "", after, ...rest }: KeyRange): KeyRange => ({
  ...rest,
  prefix: prefix + below,
  ...(after === undefined ? {} : { after: prefix + after }),
});

/** Returns a writer for the same part, for a transaction that changes other parts as well. */
export function prefixedWriter(writer: MetadataWriter, prefix: string): MetadataWriter {
  return {
    get: (key) => writer.get(prefix + key),
    has: (key) => writer.has(prefix + key),
    *range(range = {}) {
      for (const [key, value] of writer.range(inner(prefix, range))) yield [key.slice(prefix.length), value] as const;
    },
    put: (key, value) => writer.put(prefix + key, value),
    delete: (key) => writer.delete(prefix + key),
  };
}

/**
 * Returns a store with the entries of `metadata` whose keys begin with `prefix`. Its keys are
 * without the prefix. Closing it does nothing.
 */
export function prefixedStore(metadata: MetadataStore, prefix: string): MetadataStore {
  return {
    get: (key) => metadata.get(prefix + key),
    has: (key) => metadata.has(prefix + key),
    async *range(range = {}) {
      for await (const [key, value] of metadata.range(inner(prefix, range)))
        yield [key.slice(prefix.length), value] as const;
    },
    keys: async ({ limit, ...bounds }) => {
      const found = await metadata.keys({ ...inner(prefix, bounds), limit });
      return found.map((key) => key.slice(prefix.length));
    },
    transaction: (run) => metadata.transaction((writer) => run(prefixedWriter(writer, prefix))),
    compareAndSet: (key, expected, value) => metadata.compareAndSet(prefix + key, expected, value),
    close: async () => undefined,
  };
}
