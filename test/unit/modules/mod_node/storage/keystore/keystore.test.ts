import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import { KeyFiles } from "#node/storage/keystore/key_files.ts";
import { Keystore } from "#node/storage/keystore/keystore.ts";

let own: Key["id"];
before(async () => {
  own = (await generateKey({ type: "ed25519" })).id;
});
const form = { type: "ed25519" };

async function opened(t: TestContext) {
  const top = await mkdtemp(join(tmpdir(), "modhost-keys-"));
  t.after(() => rm(top, { recursive: true }));
  const folder = join(top, "keystore");
  return { folder, keys: new Keystore(new KeyFiles(folder), own) };
}

const names = (list: readonly { name: string }[]) => list.map(({ name }) => name);

test("a key is a read-only file that is named by the base32 of its name", async (t) => {
  const { folder, keys } = await opened(t);
  assert.deepEqual(names(await keys.list()), ["self"]);
  const files = {
    self2: "onswyzrs",
    Foo: "izxw6",
    "my key": "nv4sa23fpe",
    ключ: "2c5nbo6rr3iyo",
    "A/B": "iexue",
    "\0": "aa",
  };
  for (const name of Object.keys(files)) await keys.generate(name, form);
  assert.deepEqual(
    (await readdir(folder)).sort(),
    Object.values(files)
      .map((file) => `key_${file}`)
      .sort(),
  );
  assert.equal((await stat(join(folder, "key_aa"))).mode & 0o777, 0o400);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  assert.deepEqual(names(await keys.list()), ["self", "\0", "A/B", "Foo", "my key", "self2", "ключ"]);
  assert.deepEqual(await keys.export("Foo"), new Uint8Array(await readFile(join(folder, "key_izxw6"))));
});

test("foreign files are ignored, and an unreadable key is named in the error", async (t) => {
  const { folder, keys } = await opened(t);
  await keys.generate("a", form);
  await writeFile(join(folder, "key_1"), "");
  await writeFile(join(folder, "notes"), "");
  await writeFile(join(folder, ".key_me.draft"), "left by a crash", { mode: 0o400 });
  assert.deepEqual(names(await keys.list()), ["self", "a"]);
  await chmod(join(folder, "key_me"), 0o600);
  await writeFile(join(folder, "key_me"), "junk");
  await assert.rejects(keys.list(), /the key file .*key_me cannot be read: unexpected EOF/);
});

test("a draft that a crash left behind does no harm", async (t) => {
  const { folder, keys } = await opened(t);
  await keys.generate("a", form);
  await keys.remove("a");
  await writeFile(join(folder, ".key_me.draft"), "left", { mode: 0o400 });
  await keys.generate("a", form);
  assert.deepEqual(await readdir(folder), ["key_me"]);
});

test("names may be as long as file names allow", async (t) => {
  const { keys, folder } = await opened(t);
  const longest = "x".repeat(156);
  await keys.generate(longest, form);
  assert.equal((await keys.remove(longest)).name, longest);
  const tooLong = { name: "NodeError", message: /^open \S+key_[a-z2-7]{252}: file name too long$/ };
  await assert.rejects(keys.generate("x".repeat(157), form), tooLong);
  await keys.generate("a", form);
  await assert.rejects(keys.rename("a", "x".repeat(157), false), tooLong);
  assert.deepEqual(await readdir(folder), ["key_me"]);
});

test("one of several concurrent calls for the same name gets it", async (t) => {
  const { keys } = await opened(t);
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => keys.generate("a", form)));
  const failed = results.filter((result) => result.status === "rejected");
  assert.equal(failed.length, 7);
  for (const { reason } of failed) assert.equal(reason.message, "key with name 'a' already exists");
});

test("renaming preserves the key, and replaces another key only with force", async (t) => {
  const { folder, keys } = await opened(t);
  const a = await keys.generate("a", form);
  await keys.generate("b", form);
  await assert.rejects(keys.rename("a", "b", false), {
    message: "key by that name already exists, refusing to overwrite",
  });
  assert.deepEqual(await keys.rename("a", "a", true), { name: "a", id: a.id, overwritten: false });
  const { id, overwritten } = await keys.rename("a", "b", true);
  assert.deepEqual([id.toString(), overwritten], [a.id.toString(), true]);
  assert.deepEqual(await readdir(folder), ["key_mi"]);
  await assert.rejects(keys.rename("b", "", false), { message: "key name must be at least one character" });
});
