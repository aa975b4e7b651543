import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ClassicLevel } from "classic-level";
import { checkFile } from "#node/migration/from_go_ipfs/integrity.ts";
import { DatabaseDamaged, maskedCrc } from "#node/migration/lsm/fields.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

test("checksums are those of LevelDB", () => {
  // The CRC-32C of "123456789" is e3069283. LevelDB rotates it right by 15 bits and adds a
  // constant.
  const rotated = ((0xe3069283 >>> 15) | (0xe3069283 << 17)) >>> 0;
  assert.equal(maskedCrc(Buffer.from("123456789")), (rotated + 0xa282ead8) >>> 0);
});

test("a changed bit is detected anywhere in a table or journal", async (t) => {
  const folder = await emptyFolder(t);
  const level = new ClassicLevel<string, Uint8Array>(join(folder, "db"), { valueEncoding: "view", compression: false });
  const fill = async (from: number) => {
    for (let at = from; at < from + 300; at += 1) await level.put(`key ${at}`, noise(200, at));
  };
  await fill(0);
  await level.compactRange("a", "z");
  await fill(1000);
  await level.close();
  const names = (await readdir(join(folder, "db"))).filter((name) => /\.(ldb|log)$|^MANIFEST/.test(name));
  assert.deepEqual(names.map((name) => name.replace(/\d+/, "")).sort(), [".ldb", ".log", "MANIFEST-"]);
  await mkdir(join(folder, "changed"));
  for (const name of names) {
    const sound = await readFile(join(folder, "db", name));
    await checkFile(join(folder, "db", name));
    const path = join(folder, "changed", name);
    // The footer of a table has unused bytes.
    const end = name.endsWith(".ldb") ? sound.length - 48 : sound.length;
    let missed = 0;
    for (let at = 0; at < end; at += Math.ceil(end / 200)) {
      const damaged = Buffer.from(sound);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      await writeFile(path, damaged);
      const found = await checkFile(path).catch((error: Error) => error);
      if (found === undefined) missed += 1;
      else assert.ok(found instanceof DatabaseDamaged, String(found));
    }
    // A larger length in the last record of a journal looks as if the record had been cut off.
    assert.ok(missed <= (name.endsWith(".ldb") ? 0 : 2), `${name}: ${missed}`);
  }
});

test("a journal may end within a record or in zeros, and a table must be complete", async (t) => {
  const folder = await emptyFolder(t);
  const level = new ClassicLevel<string, Uint8Array>(join(folder, "db"), { valueEncoding: "view", compression: false });
  await level.put("one", noise(100, 1));
  await level.put("two", noise(100, 2));
  await level.close();
  const name = (await readdir(join(folder, "db"))).find((each) => each.endsWith(".log")) ?? assert.fail();
  const journal = await readFile(join(folder, "db", name));
  const path = join(folder, "000001.log");
  for (const length of [journal.length - 1, journal.length - 50, 150, 8, 3, 0]) {
    await writeFile(path, journal.subarray(0, length));
    await checkFile(path);
  }
  await writeFile(path, Buffer.concat([journal, Buffer.alloc(40_000)]));
  await checkFile(path);
  await writeFile(path, Buffer.concat([journal, noise(300, 3)]));
  await assert.rejects(checkFile(path), /000001\.log is damaged: the checksum of the record at \d+ is wrong/);
  const table = join(folder, "000002.ldb");
  await writeFile(table, noise(1000, 4));
  await assert.rejects(checkFile(table), /000002\.ldb is damaged: its footer is missing/);
  await writeFile(table, "");
  await assert.rejects(checkFile(table), /its footer is missing/);
});
