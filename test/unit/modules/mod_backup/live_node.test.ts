/**
 * A host that is written to is backed up; what is restored of it has all that was answered before,
 * and fits together.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createNode, type Node, type NodeModule } from "modhost/node";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import { FolderBackend } from "#modules/mod_backup/backends/folder.ts";
import { hashOf } from "#modules/mod_backup/backends/signature.ts";
import { openRepository } from "#modules/mod_backup/repository/repository.ts";
import { verify } from "#modules/mod_backup/repository/upkeep.ts";
import { restore } from "#modules/mod_backup/restore.ts";
import type { BackupModule, BackupResult } from "#modules/mod_backup/types.ts";
import { noise } from "./support.ts";

let host: TestHost;
let node: NodeModule;
const signal = new AbortController().signal;
const progress = () => {};

before(async () => {
  host = await createTestHost({ config: { modules_enabled: ["node", "backup"], node_offline: true } });
  node = host.host.exports<NodeModule>("node");
});
after(() => host?.stop());

const place = () => join(host.folder, "backups");
const backUp = (more = {}): Promise<BackupResult> =>
  host.host.exports<BackupModule>("backup").run({ to: place(), ...more }, { signal, progress });

/** A file of the host's own, of some pieces. */
const large = noise(9_000_001, 12);

/** What was answered, and must be in a backup that begins later. */
interface Answered {
  readonly pins: Map<string, string>;
  readonly files: Map<string, string>;
}

const contentOf = async (reading: AsyncIterable<Uint8Array>) => hashOf(Buffer.concat(await Array.fromAsync(reading)));

async function write(round: number, { pins, files }: Answered): Promise<void> {
  const kept = noise(70_000, round + 1);
  const { cid } = await node.add(kept, { chunker: "size-10000" });
  pins.set(cid.toString(), hashOf(kept));
  await node.add(noise(30_000, round + 5000), { pin: false });
  const path = `/dir/${round % 5}`;
  const content = noise(20_000, round + 9000);
  files.delete(path);
  await node.files.write(path, content, { create: true, parents: true, truncate: true });
  files.set(path, hashOf(content));
  if (round % 4 === 0) for await (const _ of node.repo.gc());
  if (round % 6 === 5) {
    const [first = ""] = pins.keys();
    pins.delete(first);
    await node.pin.rm(first);
  }
}

/** Opens what was restored, and compares it. */
async function check(id: string, expected: Answered): Promise<void> {
  const to = join(host.folder, `restored-${id}`);
  const repository = await openRepository(new FolderBackend(place()));
  await restore(repository, await repository.snapshot(id), { to, signal, progress });
  await using copy: Node = await createNode({ repo: join(to, "data", "repo"), offline: true });
  for await (const { msg } of copy.repo.verify()) assert.ok(!msg.startsWith("block "), msg);
  for await (const { cid, ok } of copy.pin.verify()) assert.ok(ok, `the pin ${cid} is not complete`);
  for (const [cid, hash] of expected.pins) assert.equal(await contentOf(copy.cat(cid)), hash, cid);
  for (const [path, hash] of expected.files) assert.equal(await contentOf(copy.files.read(path)), hash, path);
  const keys = (await copy.key.list()).map(({ name, id }) => `${name} ${id}`).sort();
  assert.deepEqual(keys, (await node.key.list()).map(({ name, id }) => `${name} ${id}`).sort());
  assert.equal((await copy.id()).id.toString(), (await node.id()).id.toString());
}

test("while blocks, pins and files come and go, and garbage is collected and compacted", async () => {
  const answered: Answered = { pins: new Map(), files: new Map() };
  await node.key.gen("second");
  await writeFile(join(host.folder, "notes.txt"), "of the host");
  await writeFile(join(host.folder, "large.bin"), large);
  for (let round = 0; round < 10; round += 1) await write(round, answered);
  let isOver = false;
  const writing = (async () => {
    for (let round = 10; !isOver; round += 1) await write(round, answered);
  })();
  const results: { readonly result: BackupResult; readonly expected: Answered }[] = [];
  for (let backup = 0; backup < 3; backup += 1) {
    const before = { pins: new Map(answered.pins), files: new Map(answered.files) };
    const result = await backUp();
    // What was removed or changed while it ran may be in it or not.
    for (const cid of before.pins.keys()) if (!answered.pins.has(cid)) before.pins.delete(cid);
    for (const [path, hash] of before.files) if (answered.files.get(path) !== hash) before.files.delete(path);
    results.push({ result, expected: before });
  }
  isOver = true;
  await writing;
  for (const { result, expected } of results) await check(result.id, expected);
  const { faults } = await verify(await openRepository(new FolderBackend(place())));
  assert.deepEqual(faults, []);
});

test("a backup of what has not changed writes next to nothing, and only so many stay", async () => {
  await backUp();
  const { added, bytes, removed } = await backUp({ keep: 2 });
  assert.ok(added < bytes / 5, `${added} of ${bytes} bytes were new`);
  assert.ok(removed.length > 0);
  const repository = await openRepository(new FolderBackend(place()));
  assert.equal((await repository.snapshotIds()).length, 2);
});

test("a backup beside another one is refused; one that is cancelled leaves the snapshots before it", async () => {
  const stop = new AbortController();
  const backup = host.host.exports<BackupModule>("backup");
  const first = backup.run({ to: place() }, { signal: stop.signal, progress: () => stop.abort(new Error("enough")) });
  await assert.rejects(backUp(), /is under way/);
  await assert.rejects(first, /enough/);
  assert.deepEqual((await verify(await openRepository(new FolderBackend(place())))).faults, []);
  await backUp();
});

test("the backup holds the host's own files, and not itself", async () => {
  const { id } = await backUp();
  const repository = await openRepository(new FolderBackend(place()));
  const snapshot = await repository.snapshot(id);
  const to = join(host.folder, "own");
  await restore(repository, snapshot, { to, signal, progress });
  assert.equal(await readFile(join(to, "data", "notes.txt"), "utf8"), "of the host");
  assert.ok((await readFile(join(to, "data", "large.bin"))).equals(large));
  const paths = await Array.fromAsync(repository.entries(snapshot), ({ path }) => path);
  assert.ok(!paths.some((path) => path.startsWith("backups/") || path.includes("lease") || path.includes("scratch")));
  assert.match(snapshot.notes.join(), /never run that node twice/);
});
