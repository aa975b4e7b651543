import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ClassicLevel } from "classic-level";
import { readLevelDb } from "#node/migration/from_go_ipfs/leveldb.ts";
import { tablesOf } from "#node/migration/from_go_ipfs/manifest.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

const isTable = (name: string) => name.endsWith(".ldb");

test("tables that a compaction had not finished when its process died are left alone", async (t) => {
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
