/** A part of the metadata as a store of its own. */
import type { KeyRange, MetadataReader, MetadataStore, MetadataWriter } from "./store.ts";

/** Keys are those of `metadata` less `room`, which they begin with there. Closing it closes nothing. */
export function roomOf(metadata: MetadataStore, room: string): MetadataStore {
  const inner = ({ prefix = "", after, ...rest }: KeyRange): KeyRange => ({
    ...rest,
    prefix: room + prefix,
    ...(after === undefined ? {} : { after: room + after }),
  });
  const writerOf = (writer: MetadataWriter): MetadataWriter => ({
    get: (key) => writer.get(room + key),
    has: (key) => writer.has(room + key),
    range: (range = {}) => outer(writer, inner(range)),
    put: (key, value) => writer.put(room + key, value),
    delete: (key) => writer.delete(room + key),
  });
  function* outer(reader: MetadataReader, range: KeyRange) {
    for (const [key, value] of reader.range(range)) yield [key.slice(room.length), value] as const;
  }
  return {
    get: (key) => metadata.get(room + key),
    has: (key) => metadata.has(room + key),
    async *range(range = {}) {
      for await (const [key, value] of metadata.range(inner(range))) yield [key.slice(room.length), value] as const;
    },
    transaction: (run) => metadata.transaction((writer) => run(writerOf(writer))),
    compareAndSet: (key, expected, value) => metadata.compareAndSet(room + key, expected, value),
    close: async () => undefined,
  };
}
