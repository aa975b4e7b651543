/** Copies a flatfs while it is in use: blocks that are deleted meanwhile are in the copy. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { openFlatfs } from "#node/storage/blockstore/flatfs/store.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

test("a snapshot has blocks that are deleted before, while and after their folder is listed", async (t) => {
  const home = await mkdtemp(join(tmpdir(), "modhost-flatfs-hold-"));
  t.after(() => rm(home, { recursive: true }));
  const from = join(home, "from");
  const to = join(home, "to");
  const store = await openFlatfs(from);
  const blocks = samples(120, 50);
  const cids = blocks.map(({ cid }) => cid);
  await store.put(blocks.slice(0, 100));
  await store.sync();
  // These blocks are in memory when the snapshot begins.
  await store.put(blocks.slice(100));
  const holding = store.takeSnapshot?.();
  await store.delete(cids.slice(0, 20));
  await store.delete(cids.slice(100, 110));
  const taken = await holding;
  assert.ok(taken !== undefined);
  let seen = 0;
  for await (const { name, length, read } of taken.files) {
    seen += 1;
    if (seen === 10) await store.delete(cids.slice(20, 60));
    if (seen === 30) await store.put(blocks.slice(0, 5));
    if (seen === 31) await store.delete(cids.slice(0, 2));
    const content = Buffer.concat(await Array.fromAsync(read(0)));
    assert.equal(content.length, length);
    await mkdir(dirname(join(to, name)), { recursive: true });
    await writeFile(join(to, name), content, { flag: "wx" });
  }
  const copy = await openFlatfs(to);
  for (const cid of cids) assert.ok(await copy.check(cid), `${cid} is not in the copy`);
  for (const cid of cids.slice(20, 60)) assert.equal(await store.has(cid), false);
  await taken.release();
  assert.deepEqual(await readdir(join(from, ".temp")), []);
  await copy.close();
  await store.close();
});
