import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compareNames } from "#node/formats/dag_pb/dag_pb.ts";
import { ExternalSortedMap, jsonCodec } from "#node/storage/external_sorted_map.ts";
import { openScratch } from "#node/storage/lmdb/scratch.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-spill-"));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Different unsorted names; some are beyond the basic plane, some are too long for a key. */
function* names(count: number): Generator<string> {
  for (let at = 0; at < count; at += 1) {
    const number = (at * 7919) % count;
    const prefix = number % 3 === 0 ? "\u{1f600}" : number % 3 === 1 ? "\uffee" : "a";
    yield `${prefix}${number}${number % 1000 === 999 ? "-".repeat(3000) : ""}`;
  }
}

async function listed<T>(spill: ExternalSortedMap<T>, list: number): Promise<(readonly [string, T])[]> {
  return (await Array.fromAsync(spill.pages(list))).flat();
}

for (const count of [10, 8191, 8192, 20_000]) {
  test(`${count} values are returned in the order of their names' bytes`, async () => {
    const spill = new ExternalSortedMap<number>(folder, jsonCodec());
    let at = 0;
    for (const name of names(count)) await spill.set(3, name, at++);
    await spill.set(2, "another list", -1);
    await spill.set(4, "", -2);
    const expected = [...names(count)]
      .map((name, number) => [name, number] as const)
      .sort(([a], [b]) => compareNames(a, b));
    assert.deepEqual(await listed(spill, 3), expected);
    assert.deepEqual(await listed(spill, 3), expected, "it may be read again");
    assert.deepEqual(await listed(spill, 2), [["another list", -1]]);
    assert.deepEqual(await listed(spill, 4), [["", -2]]);
    assert.deepEqual(await listed(spill, 5), []);
    for (const [name, number] of expected.slice(0, 50)) assert.equal(spill.get(3, name), number);
    assert.equal(spill.get(3, "a"), undefined);
    assert.equal([...spill.values()].length, count + 2);
    await spill.clear();
  });
}

describe("a list of many thousands", () => {
  test("returns the value that was set last, wherever the others are", async () => {
    const spill = new ExternalSortedMap<number>(folder, jsonCodec());
    for (let round = 0; round < 3; round += 1) {
      for (let at = 0; at < 7000; at += 1) await spill.set(0, String(at % 6900), round * 7000 + at);
    }
    assert.equal(spill.get(0, "5"), 14_000 + 6905);
    const all = await listed(spill, 0);
    assert.equal(all.length, 6900);
    for (const [name, value] of all) assert.equal(value, 14_000 + Number(name) + (Number(name) < 100 ? 6900 : 0), name);
    await spill.clear();
  });

  test("allows other lists to grow while it is read", async () => {
    const spill = new ExternalSortedMap<number>(folder, jsonCodec());
    for (let at = 0; at < 9000; at += 1) await spill.set(0, String(at), at);
    let read = 0;
    for await (const page of spill.pages(0)) {
      for (const [name, value] of page) {
        await spill.set(1, name, value);
        read += 1;
      }
    }
    assert.equal(read, 9000);
    assert.equal((await listed(spill, 1)).length, 9000);
    await spill.clear();
  });

  test("leaves no files behind, and can be filled again", async () => {
    const spill = new ExternalSortedMap<number>(folder, jsonCodec());
    for (let at = 0; at < 9000; at += 1) await spill.set(0, String(at), at);
    await spill.clear();
    assert.deepEqual(await readdir(folder), []);
    assert.deepEqual([...spill.values()], []);
    await spill.set(0, "a", 1);
    assert.deepEqual(await listed(spill, 0), [["a", 1]]);
    await spill.clear();
  });
});

test("a folder that cannot be written is reported", async () => {
  const spill = new ExternalSortedMap<number>(join(fileURLToPath(import.meta.url), "below"), jsonCodec());
  await assert.rejects(
    async () => {
      for (let at = 0; at < 9000; at += 1) await spill.set(0, String(at), at);
    },
    { code: "ENOTDIR" },
  );
  await spill.clear();
});

for (const full of ["opening", "writing"] as const) {
  test(`everything stays in memory when the disk is full at ${full}`, async () => {
    const error = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    let writes = 0;
    const spill = new ExternalSortedMap<number>(folder, jsonCodec(), async (at) => {
      if (full === "opening") throw error;
      const scratch = await openScratch(at);
      return {
        ...scratch,
        async write(operations) {
          writes += 1;
          // The fault occurs in the middle of a write.
          if (writes > 2) throw error;
          return scratch.write(operations);
        },
      };
    });
    let at = 0;
    for (const name of names(20_000)) await spill.set(3, name, at++);
    const expected = [...names(20_000)]
      .map((name, number) => [name, number] as const)
      .sort(([a], [b]) => compareNames(a, b));
    assert.deepEqual(await listed(spill, 3), expected);
    await spill.clear();
    assert.deepEqual(await readdir(folder), []);
  });
}
