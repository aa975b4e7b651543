import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { DatabaseDamaged } from "#node/migration/lsm/fields.ts";
import { isPebble, PebbleDatabase } from "#node/migration/pebble/database.ts";
import { seeded } from "#test/support/seeded.ts";
import { unpack } from "#test/support/unpack.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

/** Output of Pebble itself: the number of keys, and the SHA-256 of the lines `KEY=VALUE`. */
const made = {
  rows: "257 123baa79bc19320898ca096f29b59c98e99b269ad4a9814813fac3a402383036",
  columns: "290 79018bed4da597f664b8076d7dbce984362831273cd0032f3d04b51c5922c776",
  killed: "239 1d4854c514cd8744bae759abff7e6da11e44d02f608a8bf7cbf6328ef7959b53",
} as const;
/** This key was written after that output, to make Pebble write its log to the disk. */
const late = "/k/zsync";

async function database(t: TestContext, name: keyof typeof made): Promise<string> {
  const folder = await emptyFolder(t);
  await unpack(new URL(`../../../../../fixtures/pebble/${name}.tar.gz`, import.meta.url), folder);
  return folder;
}

const everything = { gte: "", lt: "\u{10ffff}" };

async function content(folder: string): Promise<string> {
  const opened = await PebbleDatabase.open(folder);
  const hash = createHash("sha256");
  let keys = 0;
  for await (const [key, value] of opened.iterator(everything)) {
    if (key === late) continue;
    hash.update(`${key}=`).update(value).update("\n");
    keys += 1;
  }
  return `${keys} ${hash.digest("hex")}`;
}

for (const name of ["rows", "columns", "killed"] as const) {
  test(`every existing key of a Pebble is read, and no removed one: ${name}`, async (t) => {
    assert.equal(await content(await database(t, name)), made[name]);
  });
}

test("single keys and ranges of keys are found", async (t) => {
  for (const name of ["rows", "columns"] as const) {
    const opened = await PebbleDatabase.open(await database(t, name));
    const all = new Map(await Array.fromAsync(opened.iterator(everything)));
    const keys = [...all.keys()];
    for (const at of [0, 1, 50, 100, keys.length - 1]) {
      const key = keys[at] as string;
      assert.deepEqual(await opened.get(key), all.get(key));
      assert.equal(await opened.get(`${key}x`), undefined);
    }
    const from = keys[60] as string;
    const to = keys[130] as string;
    const range = await Array.fromAsync(opened.iterator({ gte: from, lt: to }), ([key]) => key);
    assert.deepEqual(range, keys.slice(60, 130));
    assert.deepEqual(await Array.fromAsync(opened.iterator({ gte: "/none/", lt: "/none0" })), []);
  }
});

test("a changed bit anywhere is reported, or does not change the content", async (t) => {
  const random = seeded(7);
  for (const name of ["rows", "columns", "killed"] as const) {
    const folder = await database(t, name);
    const files = (await readdir(folder)).filter((file) => !file.startsWith("marker"));
    for (let round = 0; round < 60; round += 1) {
      const file = files[round % files.length] as string;
      const path = join(folder, file);
      const sound = await readFile(path);
      // The ends of the last log and of the manifest may have been cut off by a crash, so damage
      // there can be accepted.
      const length = sound.length - (file.endsWith(".sst") ? 0 : Math.min(sound.length - 1, 200));
      const at = Math.floor(random() * length);
      const damaged = Buffer.from(sound);
      damaged[at] = (damaged[at] as number) ^ (1 << Math.floor(random() * 8));
      await writeFile(path, damaged);
      const found = await content(folder).catch((error: Error) => error);
      if (found instanceof Error) {
        assert.ok(found instanceof DatabaseDamaged, `${file} at ${at}: ${found.stack}`);
        assert.ok(found.message.includes(file), found.message);
      } else assert.equal(found, made[name], `${name}: ${file} at ${at}`);
      await writeFile(path, sound);
    }
  }
});

test("the last log may be cut off, and earlier logs and tables must be complete", async (t) => {
  const folder = await database(t, "killed");
  const logs = (await readdir(folder)).filter((name) => name.endsWith(".log")).sort();
  const cut = async (name: string, length: number) => {
    const whole = await readFile(join(folder, name));
    await writeFile(join(folder, name), whole.subarray(0, whole.length - length));
    return () => writeFile(join(folder, name), whole);
  };
  const restore = await cut(logs[1] as string, 100);
  const [keys] = (await content(folder)).split(" ");
  assert.ok(Number(keys) > 200, keys);
  await restore();
  await cut(logs[0] as string, 100);
  await assert.rejects(content(folder), { message: new RegExp(`${logs[0]} (is damaged: the record at|is cut off)`) });
  const other = await database(t, "columns");
  const table = (await readdir(other)).find((name) => name.endsWith(".sst")) as string;
  await rename(join(other, table), join(other, "away"));
  await assert.rejects(content(other), { name: "DatabaseDamaged", message: new RegExp(`${table} is missing`) });
});

test("a folder without a Pebble, or with one of another format, causes an error that says so", async (t) => {
  const folder = await database(t, "columns");
  assert.equal(isPebble(await readdir(folder)), true);
  const mark = (await readdir(folder)).find((name) => name.startsWith("marker.format-version")) as string;
  await rename(join(folder, mark), join(folder, "marker.format-version.000099.025"));
  await assert.rejects(PebbleDatabase.open(folder), { message: /has the format 25; this node reads 13 to 24/ });
  for (const name of await readdir(folder)) await rm(join(folder, name));
  assert.equal(isPebble(await readdir(folder)), false);
  await assert.rejects(PebbleDatabase.open(folder), { message: /has no Pebble/ });
});
