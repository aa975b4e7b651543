/** A restore makes a whole folder or none. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PIECE_BYTES } from "#modules/mod_backup/repository/cut.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import { restore } from "#modules/mod_backup/restore.ts";
import { fileOf, MemoryPlace, noise, snapshotOf } from "./support.ts";

let folder: string;
let folders = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-restore-"));
});
after(() => rm(folder, { recursive: true }));

const signal = new AbortController().signal;
const progress = () => {};
const target = () => join(folder, String(++folders));
const big = noise(PIECE_BYTES + 10, 8);

async function backedUp(more: readonly ReturnType<typeof fileOf>[] = []) {
  const place = new MemoryPlace();
  const repository = await openRepository(place, { make: true });
  const files = [
    fileOf("big", big, { mode: 0o640 }),
    fileOf("deep/er/small", Buffer.from("small")),
    fileOf("nothing/", Buffer.alloc(0), { mode: 0o750 }),
    ...more,
  ];
  return { place, repository, snapshot: await snapshotOf(repository, files) };
}

test("files, folders and their permissions are as they were", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  const restored = await restore(repository, snapshot, { to, signal, progress });
  assert.deepEqual(restored, { to, files: 2, bytes: big.length + 5 });
  assert.ok((await readFile(join(to, "data/big"))).equals(big));
  assert.equal(await readFile(join(to, "data/deep/er/small"), "utf8"), "small");
  const modes = ["", "data/big", "data/deep", "data/nothing"].map(async (path) => (await stat(join(to, path))).mode);
  assert.deepEqual(
    (await Promise.all(modes)).map((mode) => mode & 0o777),
    [0o700, 0o640, 0o700, 0o750],
  );
  assert.deepEqual(await readdir(to), ["data"]);
});

test("a folder that has something stays, unless it is to be replaced: then it has another name", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(to);
  await writeFile(join(to, "mine"), "x");
  await assert.rejects(restore(repository, snapshot, { to, signal, progress }), /is not empty: name a new folder/);
  assert.deepEqual(await readdir(to), ["mine"]);
  const { former = "" } = await restore(repository, snapshot, { to, force: true, signal, progress });
  assert.deepEqual(await readdir(former), ["mine"]);
  assert.deepEqual(await readdir(to), ["data"]);
});

test("an empty folder is taken", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(to);
  await restore(repository, snapshot, { to, signal, progress });
  assert.deepEqual(await readdir(to), ["data"]);
});

test("what is damaged, and an abort, leave nothing in the place; the next call begins again", async () => {
  const { place, repository, snapshot } = await backedUp();
  const [name = ""] = place.names();
  const whole = place.objects.get(name) ?? Buffer.alloc(0);
  place.objects.set(name, whole.subarray(1));
  const to = target();
  await assert.rejects(restore(repository, snapshot, { to, signal, progress }), /is damaged/);
  await assert.rejects(stat(to), /ENOENT/);
  place.objects.set(name, whole);
  const stop = new AbortController();
  const stopping = restore(repository, snapshot, { to, signal: stop.signal, progress: () => stop.abort() });
  await assert.rejects(stopping, /abort/i);
  await assert.rejects(stat(to), /ENOENT/);
  await restore(repository, snapshot, { to, signal, progress });
  assert.deepEqual(await readdir(to), ["data"]);
});

test("a folder of somebody else beside it is not taken for a draft", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(`${to}.restoring`);
  await writeFile(join(`${to}.restoring`, "mine"), "x");
  await assert.rejects(
    restore(repository, snapshot, { to, signal, progress }),
    /is in the way, and is not of a restore/,
  );
});

test("a path that leads out of the folder is refused", async () => {
  for (const path of ["../out", "a/../../out", "/etc/passwd", "a//b"]) {
    const { repository, snapshot } = await backedUp([fileOf(path, Buffer.from("x"))]);
    await assert.rejects(restore(repository, snapshot, { to: target(), signal, progress }), /which leads elsewhere/);
  }
});
