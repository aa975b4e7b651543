import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openNode } from "#node/node/open.ts";
import {
  makeGoIpfsRepo,
  pinRecords,
  repoContent,
  writeLevels,
} from "#test/unit/modules/mod_node/migration/from_go_ipfs/go_ipfs_repo.ts";
import {
  collected,
  fileAt,
  opened,
  pinsOf,
  rootOf,
} from "#test/unit/modules/mod_node/migration/from_go_ipfs/support.ts";
import { sample } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

const text = ({ cid }: { readonly cid: unknown }) => String(cid);

test("blocks and metadata of a new repo are stored in the folder of the `data` option", async (t) => {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  const data = join(folder, "deep", "data");
  await opened({ repo, data, profile: "test" }, async (node, notices) => {
    await node.blocks.put([sample(1)]);
    await node.pins.keep([sample(1).cid]);
    await node.repo.announceApi("/ip4/127.0.0.1/tcp/1");
    assert.deepEqual(notices, []);
    assert.deepEqual((await readdir(repo)).sort(), [
      "api",
      "config",
      "datastore_spec",
      "keystore",
      "repo.lease",
      "repo.lock",
      "version",
    ]);
    await assert.rejects(openNode({ repo: join(folder, "other"), data }), {
      code: "REPO_LOCKED",
      message: `lock ${join(data, "repo.lock")}: someone else has the lock`,
    });
  });
  assert.deepEqual((await readdir(data)).sort(), ["metadata", "metadata.copy", "segments"]);
  await opened({ repo, data }, async (node) => assert.equal(await node.blocks.has(sample(1).cid), true));
});

test("a repo of go-ipfs is copied to the folder once, and stays unchanged", async (t) => {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  const data = join(folder, "data");
  await makeGoIpfsRepo(repo);
  const files = (await readdir(repo)).sort();
  await opened({ repo, data }, async (node, notices) => {
    assert.deepEqual(notices, [
      `copying the content of ${repo} to ${join(data, "segments")}; this happens once`,
      `pins and files of go-ipfs were imported from ${join(repo, "datastore")}`,
    ]);
    assert.deepEqual(await pinsOf(node), { recursive: [text(repoContent.tree)], direct: [text(repoContent.above)] });
    assert.equal(await rootOf(node), text(repoContent.root));
    assert.equal(await fileAt(node, text(repoContent.referred)), "bytes of a file\n");
    assert.ok((await collected(node)).includes(text(repoContent.garbage)));
  });
  assert.deepEqual((await readdir(repo)).sort(), files);
  await writeLevels(join(repo, "datastore"), pinRecords(repoContent.garbage, "recursive", "09"));
  await opened({ repo, data }, async (node, notices) => {
    assert.deepEqual(notices, []);
    assert.equal(await node.blocks.has(repoContent.garbage.cid), false);
    assert.deepEqual((await pinsOf(node)).recursive, [text(repoContent.tree)]);
  });
  // Without the option, the node uses the repo's own stores, which nobody has changed.
  await opened(repo, async (node) => assert.equal(await node.blocks.has(repoContent.garbage.cid), true));
});
