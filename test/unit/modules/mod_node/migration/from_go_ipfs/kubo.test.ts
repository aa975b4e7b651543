import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PIN_NAMES } from "#node/content/pins/pins.ts";
import { migrateRepo } from "#node/migration/migrate.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { base32, leaf, type MadeBlock, repoContent } from "./go_ipfs_repo.ts";
import { configOf, makeKuboRepo } from "./kubo_repo.ts";
import { collected, fileAt, opened, pinsOf, rootOf } from "./support.ts";

async function kuboRepo(t: TestContext, version?: string): Promise<string> {
  const repo = join(await emptyFolder(t), "repo");
  await makeKuboRepo(repo, version);
  return repo;
}

const text = ({ cid }: MadeBlock) => cid.toString();

async function pinNames(node: LowLevelNode): Promise<Record<string, string>> {
  const found = await Array.fromAsync(node.metadata.range({ prefix: PIN_NAMES }));
  return Object.fromEntries(found.map(([key, value]) => [key.slice(PIN_NAMES.length), Buffer.from(value).toString()]));
}

const names = { [text(repoContent.tree)]: "the tree", [text(repoContent.above)]: "grüße" };

/** Asserts that all content of the repo exists, after garbage collection. */
async function assertWhole(node: LowLevelNode): Promise<void> {
  assert.deepEqual(await pinsOf(node), { recursive: [text(repoContent.tree)], direct: [text(repoContent.above)] });
  assert.deepEqual(await pinNames(node), names);
  assert.equal(await fileAt(node, `${text(repoContent.tree)}/two`), "two\n");
  assert.equal(await fileAt(node, `${await rootOf(node)}/notes/note`), "a note\n");
  assert.equal(await node.blocks.has(repoContent.above.cid), true);
}

test("a repo of Kubo 0.43 opens with its named pins, files and blocks, and garbage collection retains what Kubo would", async (t) => {
  const repo = await kuboRepo(t);
  const config = await configOf(repo);
  const garbage = [repoContent.three, repoContent.garbage].map(text).sort();
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, [`pins and files of Kubo were imported from ${join(repo, "datastore")}`]);
    await assertWhole(node);
    assert.deepEqual(await collected(node), garbage);
    await assertWhole(node);
  });
  await opened(repo, async (node) => {
    await assertWhole(node);
    assert.deepEqual(await collected(node), []);
  });
  assert.deepEqual(await configOf(repo), config);
});

test("blocks that this node writes to a repo of Kubo have Kubo's file names, and are stored once for all their CIDs", async (t) => {
  const repo = await kuboRepo(t);
  const added = leaf("added here");
  await opened(repo, async (node) => {
    await node.blocks.put([added]);
    await node.sync();
    const { blocks } = await node.stat();
    assert.equal(await node.blocks.has(repoContent.tree.cid.toV1()), true);
    await node.blocks.put([{ cid: repoContent.tree.cid.toV1(), bytes: repoContent.tree.bytes }]);
    assert.equal((await node.stat()).blocks, blocks);
  });
  const name = base32(added.cid.multihash.bytes);
  assert.deepEqual((await readdir(join(repo, "blocks", name.slice(-3, -1)))).includes(`${name}.data`), true);
});

for (const kind of ["segments", "flatfs"] as const) {
  test(`a repo of Kubo is migrated to ${kind} with each block under the CID that refers to it`, async (t) => {
    const repo = await kuboRepo(t);
    const to = `${repo}-copy`;
    await migrateRepo(repo, to, { kind });
    await opened(to, async (node) => {
      for (const block of [repoContent.tree, repoContent.above, repoContent.root, repoContent.notes, repoContent.one]) {
        assert.equal(await node.blocks.store.has(block.cid), true);
      }
      await collected(node);
      await assertWhole(node);
    });
  });
}

test("versions 16 to 18 open, and other versions and stores fail with an error that says what to do", async (t) => {
  const repo = await kuboRepo(t, "16");
  await opened(repo, assertWhole);
  await writeFile(join(repo, "version"), "15\n");
  await assert.rejects(openRepo(repo), {
    message: /of later ones this node opens 16, 17, 18: let Kubo 0\.43 migrate/i,
  });
  await writeFile(join(repo, "version"), "19\n");
  await assert.rejects(openRepo(repo), { message: /was made by a later program/ });
  await writeFile(join(repo, "version"), "18\n");
  const badger = { child: { path: "badgerds", type: "badgerds" }, prefix: "badger.datastore", type: "measure" };
  const config = (await configOf(repo)) as { Datastore: object };
  await writeFile(join(repo, "config"), JSON.stringify({ ...config, Datastore: { Spec: badger } }));
  await writeFile(join(repo, "datastore_spec"), JSON.stringify({ path: "badgerds", type: "badgerds" }));
  await rm(join(repo, "repo.lock"), { force: true });
  await assert.rejects(openRepo(repo), {
    message: /in badgerds: make a repo with `ipfs init --profile=flatfs` of Kubo/,
  });
});
