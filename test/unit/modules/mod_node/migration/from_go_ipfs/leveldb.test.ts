import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ClassicLevel } from "classic-level";
import { checkFile } from "#node/migration/from_go_ipfs/integrity.ts";
import { readLevelDb } from "#node/migration/from_go_ipfs/leveldb.ts";
import { tablesOf } from "#node/migration/from_go_ipfs/manifest.ts";
import { maskedCrc } from "#node/migration/lsm/fields.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

const isTable = (name: string) => name.endsWith(".ldb");

test("tables of a compaction that a crash has interrupted are ignored", async (t) => {
  const folder = await emptyFolder(t);
  const db = join(folder, "db");
  const level = new ClassicLevel<string, Uint8Array>(db, { valueEncoding: "view", compression: false });
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < 100; at += 1) await level.put(`key ${at}`, noise(200, round * 100 + at));
    await level.compactRange("a", "z");
  }
  await level.close();
  const names = await readdir(db);
  const manifest = join(db, names.find((name) => name.startsWith("MANIFEST")) ?? assert.fail());
  const numbers = names.filter(isTable).map((name) => Number.parseInt(name, 10));
  assert.deepEqual([...tablesOf(manifest, await readFile(manifest))].sort(), numbers.sort());

  const sound = await readFile(join(db, names.find(isTable) ?? assert.fail()));
  await writeFile(join(db, "000990.ldb"), sound.subarray(0, sound.length / 2));
  await writeFile(join(db, "000991.ldb"), "");
  const value = await readLevelDb(db, join(folder, "scratch"), (copy) => copy.get("key 7"));
  assert.deepEqual(Buffer.from(value ?? []), Buffer.from(noise(200, 207)));
});

test("a table whose index points to the same block repeatedly counts as damaged", async (t) => {
  const folder = await emptyFolder(t);
  const withTrailer = (block: Buffer) => {
    const kind = Buffer.concat([block, Buffer.alloc(1)]);
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(maskedCrc(kind));
    return Buffer.concat([kind, sum]);
  };
  // The offset is 0, the length 10,000.
  const row = Buffer.from([0, 0, 3, 0, 0x90, 0x4e]);
  const data = withTrailer(Buffer.alloc(10_000));
  const index = (count: number) =>
    withTrailer(Buffer.concat([...Array.from({ length: count }, () => row), Buffer.alloc(4)]));
  const varint = (value: number) => [(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14];
  const table = (count: number) => {
    const meta = index(0);
    const blocks = index(count);
    const handles = [
      ...varint(data.length),
      meta.length - 5,
      ...varint(data.length + meta.length),
      ...varint(blocks.length - 5),
    ];
    const footer = Buffer.concat([
      Buffer.from(handles),
      Buffer.alloc(40 - handles.length),
      Buffer.from("57fb808b247547db", "hex"),
    ]);
    return Buffer.concat([data, meta, blocks, footer]);
  };
  const path = join(folder, "000005.ldb");
  await writeFile(path, table(1));
  await checkFile(path);
  await writeFile(path, table(5000));
  await assert.rejects(checkFile(path), { message: /indexes point to the same block repeatedly/ });
});
