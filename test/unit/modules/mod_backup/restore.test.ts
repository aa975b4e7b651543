/** A restore creates a complete folder or none. */
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PIECE_BYTES } from "#modules/mod_backup/repository/cut.ts";
import type { Snapshot } from "#modules/mod_backup/repository/format.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import { restore } from "#modules/mod_backup/restore.ts";
import { fileOf, MemoryBackend, noise, snapshotOf } from "./support.ts";

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
  const backend = new MemoryBackend();
  const repository = await openRepository(backend, { make: true });
  const files = [
    fileOf("big", big, { mode: 0o640 }),
    fileOf("deep/er/small", Buffer.from("small")),
    fileOf("nothing/", Buffer.alloc(0), { mode: 0o750 }),
    ...more,
  ];
  return { backend, repository, snapshot: await snapshotOf(repository, files) };
}

test("restored files, folders and permissions are the same as the originals", async () => {
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

test("a folder with content stays, unless it is replaced: then it is renamed", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(to);
  await writeFile(join(to, "mine"), "x");
  await assert.rejects(restore(repository, snapshot, { to, signal, progress }), /is not empty: name a new folder/);
  assert.deepEqual(await readdir(to), ["mine"]);
  const { previous: renamed = "" } = await restore(repository, snapshot, { to, force: true, signal, progress });
  assert.deepEqual(await readdir(renamed), ["mine"]);
  assert.deepEqual(await readdir(to), ["data"]);
});

test("an empty folder is accepted as the target", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(to);
  await restore(repository, snapshot, { to, signal, progress });
  assert.deepEqual(await readdir(to), ["data"]);
});

test("damaged data and an abort leave nothing in the target, and the next call starts again", async () => {
  const { backend, repository, snapshot } = await backedUp();
  const [name = ""] = backend.names();
  const whole = backend.objects.get(name) ?? Buffer.alloc(0);
  backend.objects.set(name, whole.subarray(1));
  const to = target();
  await assert.rejects(restore(repository, snapshot, { to, signal, progress }), /is damaged/);
  await assert.rejects(stat(to), /ENOENT/);
  backend.objects.set(name, whole);
  const stop = new AbortController();
  const stopping = restore(repository, snapshot, { to, signal: stop.signal, progress: () => stop.abort() });
  await assert.rejects(stopping, /abort/i);
  await assert.rejects(stat(to), /ENOENT/);
  await restore(repository, snapshot, { to, signal, progress });
  assert.deepEqual(await readdir(to), ["data"]);
});

test("a folder of another origin next to the target is not used as a draft", async () => {
  const { repository, snapshot } = await backedUp();
  const to = target();
  await mkdir(`${to}.restoring`);
  await writeFile(join(`${to}.restoring`, "mine"), "x");
  await assert.rejects(
    restore(repository, snapshot, { to, signal, progress }),
    /already exists, and does not come from a restore/,
  );
});

test("a target in a folder that the user may not write to is refused with the reason", async (t) => {
  const { repository, snapshot } = await backedUp();
  const closed = target();
  await mkdir(closed);
  for (const [path, mode] of [
    [folder, 0o755],
    [closed, 0o555],
  ] as const)
    await chmod(path, mode);
  if (process.getuid?.() === 0) {
    process.seteuid?.(65_534);
    t.after(() => process.seteuid?.(0));
  }
  await assert.rejects(
    restore(repository, snapshot, { to: join(closed, "new"), signal, progress }),
    /Cannot create new\.restoring in .* \(EACCES\): .* a folder that this user may write to/,
  );
});

test("a path that leads out of the folder is refused", async () => {
  for (const path of ["../out", "a/../../out", "/etc/passwd", "a//b"]) {
    const { repository, snapshot } = await backedUp([fileOf(path, Buffer.from("x"))]);
    await assert.rejects(
      restore(repository, snapshot, { to: target(), signal, progress }),
      /which leads out of the folder/,
    );
  }
});

test("a restored program does not run as its owner", async () => {
  const { repository, snapshot } = await backedUp();
  const entry = (path: string, mode: number) =>
    `${JSON.stringify({ folder: "data", path, mode, size: 0, pieces: [] })}\n`;
  const list = Buffer.from(entry("su", 0o106755) + entry("shared/", 0o43777));
  const hash = repository.seal.hash(list);
  await repository.writeObject(hash, list);
  const to = target();
  await restore(repository, { ...snapshot, list: [[hash, list.length]] }, { to, signal, progress });
  assert.equal((await stat(join(to, "data/su"))).mode & 0o7777, 0o755);
  assert.equal((await stat(join(to, "data/shared"))).mode & 0o7777, 0o777);
});

test("a snapshot that states fewer bytes than it has cannot fill the disk", async () => {
  const { repository, snapshot } = await backedUp();
  let most = 0;
  const lying = { ...snapshot, bytes: 100 };
  const attempt = restore(repository, lying, { to: target(), signal, progress: (bytes) => (most = bytes) });
  await assert.rejects(attempt, /have more than the 100 bytes/);
  assert.equal(most, 0);
});

test("the root of the file system is never replaced", async () => {
  const { repository, snapshot } = await backedUp();
  await assert.rejects(
    restore(repository, snapshot, { to: "/", force: true, signal, progress }),
    /\/ cannot be replaced: name a folder in it/,
  );
  await assert.rejects(stat("/.restoring"), /ENOENT/);
});

test("an invalid snapshot counts as damaged, and its texts cannot control a terminal", async () => {
  const { repository, snapshot: whole } = await backedUp();
  const { id: _, ...facts } = whole;
  const read = async (more: object) =>
    repository.snapshot(await repository.writeSnapshot({ ...facts, ...more } as Snapshot));
  const [folder] = facts.folders;
  const wrong = [
    { config: "../../etc/evil" },
    { config: "/etc/evil" },
    { folders: [{ ...folder, option: "x=1; rm -rf ~; y" }] },
    { folders: [{ ...folder, to: "../up" }] },
    { folders: [null] },
    { notes: [1] },
    { version: "new" },
    { bytes: -1 },
    { list: null },
    { format: "1" },
  ];
  for (const more of wrong) await assert.rejects(read(more), /is not a valid snapshot/, JSON.stringify(more));
  const { machine, notes } = await read({ machine: "a\u001b[2Jb", notes: ["\u001b]0;x\u0007"] });
  assert.deepEqual([machine, notes], ["a\\x1b[2Jb", ["\\x1b]0;x\\x07"]]);
});
