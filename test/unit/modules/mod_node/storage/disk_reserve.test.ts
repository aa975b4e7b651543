import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { mkdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { withRoom } from "#node/storage/blockstore/segments/files.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import { DiskReserve, releaseIfFull } from "#node/storage/disk_reserve.ts";
import { sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { SmallDisk } from "#test/unit/modules/mod_node/storage/blockstore/segments/workshop.ts";

const home = mkdtempSync(join(tmpdir(), "modhost-reserve-"));
after(() => rm(home, { recursive: true, force: true }));

const GIBIBYTE = 1024 ** 3;
const mebibyte = 1024 * 1024;
const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** A folder, and its reserve on a disk of the given size. */
async function reserveOn(name: string, free: () => number, total: number) {
  const folder = join(home, name);
  await mkdir(folder);
  const reserve = new DiskReserve(folder, async () => ({ free: free(), total }));
  return { folder, reserve, reserveSize: () => sizeOf(join(folder, "reserve")) };
}

test("a disk that fills up gets a reserve, which is deleted once and created again when there is space", async () => {
  let free = 20 * mebibyte;
  const { reserve, reserveSize } = await reserveOn("small", () => free, 32 * mebibyte);
  await reserve.start();
  assert.equal(await reserveSize(), mebibyte);
  free = 0;
  assert.equal(await reserve.release(), true);
  assert.equal(await reserveSize(), 0);
  assert.equal(await reserve.release(), false);
  await reserve.keep();
  assert.equal(await reserveSize(), 0);
  free = 20 * mebibyte;
  await reserve.keep();
  assert.equal(await reserveSize(), mebibyte);
  await reserve.stop();
  assert.equal(await reserveSize(), mebibyte);
});

test("a disk with plenty of space gets no reserve, nor does one without a limit", async () => {
  const large = await reserveOn("large", () => 100 * GIBIBYTE, 200 * GIBIBYTE);
  await large.reserve.keep();
  assert.equal(await large.reserveSize(), 0);
  const endless = await reserveOn("endless", () => 0, 0);
  await endless.reserve.keep();
  assert.equal(await endless.reserveSize(), 0);
});

test("the reserve is deleted before a start only when the disk is full", async () => {
  const folder = join(home, "start");
  await mkdir(folder);
  await writeFile(join(folder, "reserve"), "room");
  await releaseIfFull([folder, join(home, "missing")]);
  const { bavail } = await statfs(folder);
  assert.equal(await sizeOf(join(folder, "reserve")), bavail > 0 ? 4 : 0);
  await releaseIfFull([folder], async () => ({ free: 3, total: 1000 }));
  assert.equal(await sizeOf(join(folder, "reserve")), 0);
});

test("a write to a full disk is tried again with the space of the reserve", async () => {
  const disk = new SmallDisk(3000);
  let released = 0;
  const store = await openSegmentStore(join(home, "store"), {
    fs: withRoom(disk.fs, undefined),
    makeRoom: async () => {
      released += 1;
      if (released > 1) return false;
      disk.left += 2000;
      return true;
    },
  });
  await store.put([sample(1, 2500)]);
  await store.sync();
  await store.put([sample(2, 1500)]);
  await store.sync();
  assert.equal(released, 1);
  await store.put([sample(3, 1500)]);
  await assert.rejects(store.sync(), { code: "STORE_FULL" });
  assert.deepEqual(await store.get(sample(2, 1500).cid), sample(2, 1500).bytes);
  disk.left = 10_000;
  await store.close();
});
