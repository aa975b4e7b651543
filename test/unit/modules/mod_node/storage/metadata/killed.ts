/** Writes one key after the other and reports each acknowledgement, until it is killed. */
import { openLmdbMetadata } from "#node/storage/metadata/lmdb.ts";

const store = await openLmdbMetadata(process.argv[2] as string);
for (let count = 1; ; count += 1) {
  await store.transaction((writer) => writer.put(`key-${count}`, new Uint8Array(200)));
  process.send?.(count);
}
