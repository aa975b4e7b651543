/** A part of the metadata as a store of its own. */
import type { KeyRange, MetadataReader, MetadataStore, MetadataWriter } from "./store.ts";

/** The entries of `metadata` whose keys begin with `prefix`, under keys without it. Closing it does nothing. */
export function prefixedStore(metadata: MetadataStore, prefix: string): MetadataStore {
  const inner = ({ prefix: below = "", after, ...rest }: KeyRange): KeyRange => ({
    ...rest,
    prefix: prefix + below,
    ...(after === undefined ? {} : { after: prefix + after }),
  });
  const writerOf = (writer: MetadataWriter): MetadataWriter => ({
    get: (key) => writer.get(prefix + key),
    has: (key) => writer.has(prefix + key),
    range: (range = {}) => outer(writer, inner(range)),
    put: (key, value) => writer.put(prefix + key, value),
    delete: (key) => writer.delete(prefix + key),
  });
  function* outer(reader: MetadataReader, range: KeyRange) {
    for (const [key, value] of reader.range(range)) yield [key.slice(prefix.length), value] as const;
  }
  return {
    get: (key) => metadata.get(prefix + key),
    has: (key) => metadata.has(prefix + key),
    async *range(range = {}) {
      for await (const [key, value] of metadata.range(inner(range))) yield [key.slice(prefix.length), value] as const;
    },
    transaction: (run) => metadata.transaction((writer) => run(writerOf(writer))),
    compareAndSet: (key, expected, value) => metadata.compareAndSet(prefix + key, expected, value),
    close: async () => undefined,
  };
}
