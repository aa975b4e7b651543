/**
 * A host is backed up while it is being changed. The restored host has everything that was
 * confirmed before, and is consistent.
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

const destination = () => join(host.folder, "backups");
const backUp = (more = {}): Promise<BackupResult> =>
  host.host.exports<BackupModule>("backup").run({ to: destination(), ...more }, { signal, progress });

/** A file of the host that consists of several pieces. */
const large = noise(9_000_001, 12);

/** Content that was confirmed, and must be in a backup that begins later. */
interface Confirmed {
  readonly pins: Map<string, string>;
  readonly files: Map<string, string>;
}

const contentOf = async (reading: AsyncIterable<Uint8Array>) => hashOf(Buffer.concat(await Array.fromAsync(reading)));

async function write(round: number, { pins, files }: Confirmed): Promise<void> {
  const pinned = noise(70_000, round + 1);
  const { cid } = await node.add(pinned, { chunker: "size-10000" });
  pins.set(cid.toString(), hashOf(pinned));
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

/** Opens the restored host, and compares it. */
async function check(id: string, expected: Confirmed): Promise<void> {
  const to = join(host.folder, `restored-${id}`);
  const repository = await openRepository(new FolderBackend(destination()));
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

test("a backup is complete while blocks, pins and files are added and removed, and garbage is collected", async () => {
  const confirmed: Confirmed = { pins: new Map(), files: new Map() };
  await node.key.gen("second");
  await writeFile(join(host.folder, "notes.txt"), "of the host");
  await writeFile(join(host.folder, "large.bin"), large);
  for (let round = 0; round < 10; round += 1) await write(round, confirmed);
  let isOver = false;
  const writing = (async () => {
    for (let round = 10; !isOver; round += 1) await write(round, confirmed);
  })();
  const results: { readonly result: BackupResult; readonly expected: Confirmed }[] = [];
  for (let backup = 0; backup < 3; backup += 1) {
    const before = { pins: new Map(confirmed.pins), files: new Map(confirmed.files) };
    const result = await backUp();
    // Content that was removed or changed during the backup may be in it or not.
    for (const cid of before.pins.keys()) if (!confirmed.pins.has(cid)) before.pins.delete(cid);
    for (const [path, hash] of before.files) if (confirmed.files.get(path) !== hash) before.files.delete(path);
    results.push({ result, expected: before });
  }
  isOver = true;
  await writing;
  for (const { result, expected } of results) await check(result.id, expected);
  const { faults } = await verify(await openRepository(new FolderBackend(destination())));
  assert.deepEqual(faults, []);
});

test("a backup of unchanged data writes almost nothing, and only the requested number of snapshots stays", async () => {
  await backUp();
  const { added, bytes, removed } = await backUp({ keep: 2 });
  assert.ok(added < bytes / 5, `${added} of ${bytes} bytes were new`);
  assert.ok(removed.length > 0);
  const repository = await openRepository(new FolderBackend(destination()));
  assert.equal((await repository.snapshotIds()).length, 2);
});

test("a second backup at the same time is refused, and a cancelled one leaves the earlier snapshots", async () => {
  const stop = new AbortController();
  const backup = host.host.exports<BackupModule>("backup");
  const first = backup.run(
    { to: destination() },
    { signal: stop.signal, progress: () => stop.abort(new Error("enough")) },
  );
  await assert.rejects(backUp(), /has been running since/);
  await assert.rejects(first, /enough/);
  assert.deepEqual((await verify(await openRepository(new FolderBackend(destination())))).faults, []);
  await backUp();
});

test("a backup contains the host's own files, and not itself", async () => {
  const { id } = await backUp();
  const repository = await openRepository(new FolderBackend(destination()));
  const snapshot = await repository.snapshot(id);
  const to = join(host.folder, "own");
  await restore(repository, snapshot, { to, signal, progress });
  assert.equal(await readFile(join(to, "data", "notes.txt"), "utf8"), "of the host");
  assert.ok((await readFile(join(to, "data", "large.bin"))).equals(large));
  const paths = await Array.fromAsync(repository.entries(snapshot), ({ path }) => path);
  assert.ok(!paths.some((path) => path.startsWith("backups/") || path.includes("lease") || path.includes("scratch")));
  assert.match(snapshot.notes.join(), /never run that node twice/);
});
