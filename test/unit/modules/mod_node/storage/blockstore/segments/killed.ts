/** Puts blocks, deletes every tenth, and reports what was acknowledged, until it is killed. */
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import { sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

const store = await openSegmentStore(process.argv[2] as string, { segmentBytes: 100_000 });
for (let seed = 1; ; seed += 8) {
  const put = Array.from({ length: 8 }, (_, at) => seed + at);
  await Promise.all(put.map((one) => store.put([sample(one, 3000)]).then(() => store.sync())));
  const deleted = put.filter((one) => one % 10 === 0);
  await store.delete(deleted.map((one) => sample(one, 3000).cid));
  if (seed % 80 === 1) await store.compact();
  process.send?.({ put, deleted });
}
