import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createNode, type Node } from "modhost/node";
import { migrateRepo } from "#node/migration/migrate.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

interface Content {
  readonly repo: string;
  readonly data: string;
  /**
   * CIDs of a recursively pinned file and of a directly pinned one, and the name that resolves to
   * the first.
   */
  readonly pinned: string;
  readonly direct: string;
  readonly name: string;
}

const open = (repo: string, more: object = {}) => createNode({ repo, offline: true, ...more });

/** Creates a repo with a pin of each kind, a file in MFS and a published name, and closes it. */
async function filled(t: TestContext): Promise<Content> {
  const repo = join(await emptyFolder(t), "repo");
  await using node = await open(repo);
  const { cid } = await node.add("pinned");
  const { cid: direct } = await node.add("direct", { pin: false });
  await node.pin.add(direct, { recursive: false });
  await node.files.write("/deep/file", "in the namespace", { create: true, parents: true });
  const { name } = await node.name.publish(cid, { allowOffline: true });
  return { repo, data: join(repo, "metadata", "data.mdb"), pinned: String(cid), direct: String(direct), name };
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(chunks)).toString();
}

async function assertWhole(node: Node, { pinned, direct, name }: Content): Promise<void> {
  for await (const { err } of node.repo.gc()) assert.equal(err ?? undefined, undefined);
  assert.equal(await textOf(node.cat(pinned)), "pinned");
  assert.equal(await textOf(node.cat(direct)), "direct");
  assert.equal(await textOf(node.files.read("/deep/file")), "in the namespace");
  const pins = await Array.fromAsync(node.pin.ls());
  assert.equal(pins.find(({ cid }) => String(cid) === direct)?.type, "direct");
  assert.equal((await Array.fromAsync(node.name.resolve(name))).at(-1), `/ipfs/${pinned}`);
}

for (const [how, lose] of [
  ["missing", (file: string) => rm(file)],
  ["empty", (file: string) => truncate(file)],
] as const) {
  test(`a start with blocks and ${how} metadata fails, and restoring the copy recovers everything`, async (t) => {
    const content = await filled(t);
    const { repo, data } = content;
    await lose(data);
    const before = await readdir(join(repo, "metadata"));
    await assert.rejects(open(repo), (error: Error & { code?: string }) => {
      assert.equal(error.code, "METADATA_LOST");
      assert.match(error.message, /metadata is missing or empty, though there are blocks in .*segments: /);
      assert.match(error.message, /--restore-pins \(option node_lost_metadata: restore\), which takes the copy of 20/);
      assert.match(error.message, /--rebuild-pins-none/);
      return true;
    });
    assert.deepEqual(await readdir(join(repo, "metadata")), before);
    await assert.rejects(migrateRepo(repo, `${repo}-migrated`), { code: "METADATA_LOST" });
    const notices: string[] = [];
    const onNotice = (sentence: string) => notices.push(sentence);
    await using node = await open(repo, { lostMetadata: "restore", onNotice });
    assert.match(notices.join(), /metadata was lost: \d+ entries were restored from the copy of 20/);
    await assertWhole(node, content);
  });
}

test("without a copy, or with a damaged one, nothing is restored", async (t) => {
  const { repo, data } = await filled(t);
  await rm(data);
  const copy = join(repo, "metadata.copy");
  const text = await readFile(copy, "utf8");
  await writeFile(copy, text.replace(/pins\/recursive\/Qm./, "pins/recursive/Qmz"));
  await assert.rejects(open(repo, { lostMetadata: "restore" }), {
    message: `the copy of the metadata in ${copy} is damaged: its checksum does not fit`,
  });
  await rm(copy);
  for (const lostMetadata of ["refuse", "restore"]) {
    await assert.rejects(
      open(repo, { lostMetadata }),
      /There is no copy in .*: put back a backup of the folder; or, to start/,
    );
  }
  await assert.rejects(stat(data), { code: "ENOENT" });
});

test("a node starts without pins only on explicit request, and the copy is renamed", async (t) => {
  const { repo, data, pinned } = await filled(t);
  await rm(data);
  const copied = await readFile(join(repo, "metadata.copy"), "utf8");
  {
    await using node = await open(repo, { lostMetadata: "none" });
    const pins = (await Array.fromAsync(node.pin.ls())).map(({ cid }) => String(cid));
    assert.deepEqual(pins, ["QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"]);
    assert.equal(await textOf(node.cat(pinned)), "pinned");
  }
  assert.equal(await readFile(join(repo, "metadata.copy.lost"), "utf8"), copied);
  await (await open(repo)).close();
});
