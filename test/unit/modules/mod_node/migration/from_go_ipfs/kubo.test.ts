import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { PIN_NAMES } from "#node/content/pins/pins.ts";
import { migrateRepo } from "#node/migration/migrate.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openRepo } from "#node/storage/repo/repo.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { base32, held, leaf, type MadeBlock } from "./go_ipfs_repo.ts";
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

const names = { [text(held.tree)]: "the tree", [text(held.above)]: "grüße" };

/** All that belongs to it, after a collection. */
async function assertWhole(node: LowLevelNode): Promise<void> {
  assert.deepEqual(await pinsOf(node), { recursive: [text(held.tree)], direct: [text(held.above)] });
  assert.deepEqual(await pinNames(node), names);
  assert.equal(await fileAt(node, `${text(held.tree)}/two`), "two\n");
  assert.equal(await fileAt(node, `${await rootOf(node)}/notes/note`), "a note\n");
  assert.equal(await node.blocks.has(held.above.cid), true);
}

test("a repo of Kubo 0.43 opens: pins with their names, files and blocks, and the collector keeps what Kubo would", async (t) => {
  const repo = await kuboRepo(t);
  const config = await configOf(repo);
  const garbage = [held.three, held.garbage].map(text).sort();
  await opened(repo, async (node, notices) => {
    assert.deepEqual(notices, [`pins and files of Kubo were taken over from ${join(repo, "datastore")}`]);
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

test("what is written there is named as Kubo names it, and is there once whatever its form", async (t) => {
  const repo = await kuboRepo(t);
  const added = leaf("added here");
  await opened(repo, async (node) => {
    await node.blocks.put([added]);
    await node.sync();
    const { blocks } = await node.stat();
    assert.equal(await node.blocks.has(held.tree.cid.toV1()), true);
    await node.blocks.put([{ cid: held.tree.cid.toV1(), bytes: held.tree.bytes }]);
    assert.equal((await node.stat()).blocks, blocks);
  });
  const name = base32(added.cid.multihash.bytes);
  assert.deepEqual((await readdir(join(repo, "blocks", name.slice(-3, -1)))).includes(`${name}.data`), true);
});

for (const kind of ["segments", "flatfs"] as const) {
  test(`it goes to ${kind} with each block in the form in which it is referred to`, async (t) => {
    const repo = await kuboRepo(t);
    const to = `${repo}-copy`;
    await migrateRepo(repo, to, { kind });
    await opened(to, async (node) => {
      for (const block of [held.tree, held.above, held.root, held.notes, held.one]) {
        assert.equal(await node.blocks.store.has(block.cid), true);
      }
      await collected(node);
      await assertWhole(node);
    });
  });
}

test("versions 16 to 18 open; others, and stores that cannot be read, are refused with what to do", async (t) => {
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
