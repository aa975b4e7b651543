/**
 * The content of a repository, what a second backup writes, and what is found when something is
 * lost.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf } from "#modules/mod_backup/backends/signature.ts";
import { PIECE_BYTES } from "#modules/mod_backup/repository/cut.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import { prune, verify } from "#modules/mod_backup/repository/upkeep.ts";
import { contentsOf, fileOf, MemoryBackend, noise, snapshotOf } from "./support.ts";

async function opened(secret?: Uint8Array) {
  const backend = new MemoryBackend();
  return { backend, repository: await openRepository(backend, { make: true, secret }) };
}

const big = noise(2.5 * PIECE_BYTES);

test("everything that was backed up can be read: large, small and empty files, and folders", async () => {
  const { repository } = await opened();
  const small = Array.from({ length: 30 }, (_, at) => fileOf(`small/${at}`, noise(1000 + at, at + 2)));
  const snapshot = await snapshotOf(repository, [
    fileOf("big", big),
    ...small,
    fileOf("empty", Buffer.alloc(0)),
    fileOf("folder/", Buffer.alloc(0)),
  ]);
  const found = await contentsOf(repository, snapshot.id);
  assert.equal(found.big, hashOf(big));
  assert.equal(found["small/7"], hashOf(noise(1007, 9)));
  assert.equal(found.empty, hashOf(""));
  assert.ok("folder/" in found);
  assert.deepEqual([snapshot.files, snapshot.bytes], [32, big.length + 30 * 1000 + 435]);
});

test("a reader may reuse its memory for each piece", async () => {
  const { repository } = await opened();
  const buffer = Buffer.alloc(1_000_003);
  async function* read(from: number) {
    for (let at = from; at < big.length; at += buffer.length) {
      const length = big.copy(buffer, 0, at);
      yield buffer.subarray(0, length);
    }
  }
  const { id } = await snapshotOf(repository, [{ ...fileOf("big", big), read }]);
  assert.equal((await contentsOf(repository, id)).big, hashOf(big));
});

test("a second backup reads and writes only new data", async () => {
  const { backend, repository } = await opened();
  const grown = Buffer.concat([big, noise(1000, 5)]);
  await snapshotOf(repository, [fileOf("same", big.subarray(1), { state: "1" }), fileOf("log", big, { growing: "a" })]);
  backend.written = [];
  const same = fileOf("same", big.subarray(1), { state: "1" });
  const log = fileOf("log", grown, { growing: "a" });
  const second = await snapshotOf(repository, [same, log]);
  assert.equal(same.reads, 0);
  assert.ok(log.reads < 2 * PIECE_BYTES, `${log.reads} bytes of the log were read`);
  assert.ok(second.added < PIECE_BYTES, `${second.added} bytes were written`);
  assert.equal((await contentsOf(repository, second.id)).log, hashOf(grown));
});

test("a file that has grown is read again completely if its beginning has changed", async () => {
  const { repository } = await opened();
  await snapshotOf(repository, [fileOf("log", big, { growing: "a" })]);
  const other = noise(3 * PIECE_BYTES, 77);
  const { id } = await snapshotOf(repository, [fileOf("log", other, { growing: "a" })]);
  assert.equal((await contentsOf(repository, id)).log, hashOf(other));
});

test("after a change in a text file, only the lines around it are written", async () => {
  const { repository } = await opened();
  const lines = (from: number) =>
    Buffer.from(Array.from({ length: 20_000 }, (_, at) => `${hashOf(String(at + from))}\n`).join(""));
  const first = await snapshotOf(repository, [fileOf("lines", lines(0), { is_lines: true })]);
  const { id, added } = await snapshotOf(repository, [fileOf("lines", lines(7), { is_lines: true })]);
  assert.equal((await contentsOf(repository, id)).lines, hashOf(lines(7)));
  assert.ok(added < first.added / 4, `${added} of ${first.added} bytes`);
});

test("the snapshot is written last, and an interrupted backup leaves none", async () => {
  const { backend, repository } = await opened();
  await snapshotOf(repository, [fileOf("a", big)]);
  assert.match(backend.written.at(-1) ?? "", /^snapshots\//);
  const before = await repository.snapshotIds();
  backend.before = (name) => {
    if (name.startsWith("objects/")) throw new Error("the disk is full");
  };
  await assert.rejects(snapshotOf(repository, [fileOf("a", noise(3 * PIECE_BYTES, 9))]), /the disk is full/);
  backend.before = () => {};
  assert.deepEqual(await repository.snapshotIds(), before);
  assert.deepEqual((await verify(repository)).faults, []);
  assert.ok(!backend.objects.has("lock"));
});

test("an abort ends a backup, and the next one reuses what was written", async () => {
  const { backend, repository } = await opened();
  const stop = new AbortController();
  backend.before = (name) => {
    if (name.startsWith("objects/")) stop.abort(new Error("enough"));
  };
  await assert.rejects(snapshotOf(repository, [fileOf("a", big)], stop.signal), /enough/);
  backend.before = () => {};
  backend.written = [];
  const { id, added } = await snapshotOf(repository, [fileOf("a", big)]);
  assert.ok(added < big.length);
  assert.equal((await contentsOf(repository, id)).a, hashOf(big));
});

test("missing and damaged objects are found with the snapshots that need them, and the next backup writes them again", async () => {
  const { backend, repository } = await opened();
  const { id } = await snapshotOf(repository, [fileOf("a", big, { state: "1" })]);
  const [lost = "", hurt = ""] = backend.names();
  const bytes = Buffer.from(backend.objects.get(hurt) ?? []);
  backend.objects.delete(lost);
  bytes[5] = ~(bytes[5] ?? 0);
  backend.objects.set(hurt, bytes);
  const { faults } = await verify(repository);
  assert.equal(faults.length, 2);
  assert.ok(faults.some((fault) => fault === `${lost} is missing (snapshot ${id})`));
  assert.ok(faults.some((fault) => fault.startsWith(`${hurt} is damaged`)));
  await assert.rejects(contentsOf(repository, id), /is missing|is damaged/);
  assert.equal((await verify(repository, { repair: true })).faults.length, 2);
  assert.ok(!backend.objects.has(hurt) && !backend.objects.has("lock"));
  const again = await snapshotOf(repository, [fileOf("a", big, { state: "1" })]);
  assert.equal((await contentsOf(repository, again.id)).a, hashOf(big));
  assert.deepEqual((await verify(repository)).faults, []);
});

test("an object is read by its hash only, and not by a path in a manipulated snapshot", async () => {
  const { backend, repository } = await opened();
  const names: string[] = [];
  const { read } = backend;
  backend.read = (name) => {
    names.push(name);
    return read.call(backend, name);
  };
  await assert.rejects(repository.readObject("../../../etc/passwd"), /is not the name of an object/);
  assert.deepEqual(names, []);
});

test("a snapshot whose text was changed is refused", async () => {
  const { backend, repository } = await opened();
  const { id } = await snapshotOf(repository, [fileOf("a", Buffer.from("x"))]);
  const name = `snapshots/${id}`;
  backend.objects.set(name, Buffer.from(String(backend.objects.get(name)).replace('"files":1', '"files":2')));
  await assert.rejects(repository.snapshot(id), /is damaged: its hash is different/);
});

test("old snapshots are removed with the objects that nothing else uses", async () => {
  const { backend, repository } = await opened();
  const versions = [noise(PIECE_BYTES, 1), noise(PIECE_BYTES, 2), noise(PIECE_BYTES, 3)];
  for (const content of versions) await snapshotOf(repository, [fileOf("a", content), fileOf("b", big)]);
  backend.objects.set(`objects/ff/${"f".repeat(64)}`, Buffer.from("left behind"));
  const { snapshots, objects } = await prune(repository, 2);
  assert.equal(snapshots.length, 1);
  assert.ok(objects >= 2);
  const ids = await repository.snapshotIds();
  assert.equal(ids.length, 2);
  assert.equal((await contentsOf(repository, ids[0] ?? "")).a, hashOf(versions[1] ?? ""));
  assert.deepEqual((await verify(repository)).faults, []);
});

test("nothing is removed while a remaining snapshot cannot be read", async () => {
  const { backend, repository } = await opened();
  for (const seed of [1, 2]) await snapshotOf(repository, [fileOf("a", noise(1000, seed))]);
  const [, latest = ""] = await repository.snapshotIds();
  backend.objects.set(`snapshots/${latest}`, Buffer.from("{}"));
  const before = backend.names();
  await assert.rejects(prune(repository, 1), /is damaged/);
  assert.deepEqual(backend.names(), before);
  // A repair removes it, and the previous one is then the latest.
  assert.equal((await verify(repository, { repair: true })).faults.length, 1);
  assert.deepEqual((await prune(repository, 1)).snapshots, []);
  assert.equal((await repository.snapshotIds()).length, 1);
});

test("only one writer is allowed at a time, and the lock of an ended process delays nobody", async () => {
  const { backend, repository } = await opened();
  const holder = (pid: number, at: Date, machine: string) =>
    backend.objects.set("lock", Buffer.from(JSON.stringify({ id: "x", machine, pid, at: at.toISOString() })));
  holder(1, new Date(), "elsewhere");
  await assert.rejects(snapshotOf(repository, []), /is being written by process 1 of elsewhere/);
  await assert.rejects(prune(repository, 1), /is being written/);
  holder(1, new Date(Date.now() - 3_600_000), "elsewhere");
  await snapshotOf(repository, []);
  const { hostname } = await import("node:os");
  holder(2 ** 22 + 1, new Date(), hostname());
  await snapshotOf(repository, []);
  // In a container, the process may have the same number as the previous one.
  holder(process.pid, new Date(), hostname());
  await snapshotOf(repository, []);
});

test("a writer whose lock was taken over completes nothing", async () => {
  const { backend, repository } = await opened();
  backend.before = (name) => {
    if (name.startsWith("objects/")) backend.objects.set("lock", Buffer.from('{"id":"other"}'));
  };
  await assert.rejects(snapshotOf(repository, [fileOf("a", big)]), /was taken over by another backup/);
  assert.deepEqual(await repository.snapshotIds(), []);
  assert.ok(backend.objects.has("lock"), "the lock of the other one stays");
});

test("an encrypted repository reveals nothing of its content, and needs its key", async () => {
  const secret = Buffer.from("correct horse");
  const { backend, repository } = await opened(secret);
  const text = Buffer.from("a secret that is easily found");
  const { id } = await snapshotOf(repository, [fileOf("a", text), fileOf("b", big)]);
  for (const [name, bytes] of backend.objects) {
    assert.ok(!bytes.includes(text) && !bytes.includes("/data"), `${name} tells something`);
    assert.ok(!name.includes(hashOf(text)));
  }
  const again = await openRepository(backend, { secret });
  assert.equal((await contentsOf(again, id)).b, hashOf(big));
  await assert.rejects(openRepository(backend, { secret: Buffer.from("wrong") }), /encrypted with a different key/);
  await assert.rejects(openRepository(backend), /is encrypted: name the file of its key/);
  const [one = "", other = ""] = backend.names();
  backend.objects.set(one, backend.objects.get(other) ?? Buffer.alloc(0));
  assert.equal((await verify(again)).faults.length, 1);
});

test("two writers that create an encrypted repository at the same time open the same one", async () => {
  const backend = new MemoryBackend();
  const secret = Buffer.from("key");
  const opening = [1, 2].map(() => openRepository(backend, { secret, make: true }));
  const [one, other] = await Promise.all(opening);
  assert.equal(one?.seal.hash(big), other?.seal.hash(big));
});

test("the failure of the work is reported even if the lock cannot be removed", async () => {
  const { backend, repository } = await opened();
  backend.before = () => {
    backend.read = () => Promise.reject(new Error("no connection"));
    throw new Error("the disk is full");
  };
  await assert.rejects(snapshotOf(repository, [fileOf("a", big)]), /the disk is full/);
});

test("a destination with other files or of a later version is refused", async () => {
  const backend = new MemoryBackend();
  backend.objects.set("photo.jpg", Buffer.from("x"));
  await assert.rejects(openRepository(backend, { make: true }), /is not empty \(photo.jpg\)/);
  await assert.rejects(openRepository(new MemoryBackend()), /There is no backup in memory/);
  backend.objects.set("repository.json", Buffer.from('{"kind":"modhost backup","format":99}'));
  await assert.rejects(openRepository(backend), /later version/);
  const { backend: plain } = await opened();
  await assert.rejects(openRepository(plain, { secret: Buffer.from("key") }), /is not encrypted/);
});

test("a lock without a holder stops nobody", async () => {
  for (const text of ["null", "{}", "", "[1]"]) {
    const backend = new MemoryBackend();
    const repository = await openRepository(backend, { make: true });
    backend.objects.set("lock", Buffer.from(text));
    await snapshotOf(repository, [fileOf("a", Buffer.from("a"))]);
    assert.equal((await repository.snapshotIds()).length, 1, text);
  }
});
