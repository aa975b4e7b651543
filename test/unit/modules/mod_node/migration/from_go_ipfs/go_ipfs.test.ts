/** Runs with the go-ipfs program that GO_IPFS names; otherwise the tests are skipped. */
import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { migrateRepo } from "modhost/node";
import { parseCid } from "#node/formats/cid/text.ts";
import { openNode } from "#node/node/open.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { base32 } from "./go_ipfs_repo.ts";
import { collected, fileAt, go, goDaemon, opened, pinsOf, rootOf, runGoIpfs, withoutGoIpfs } from "./support.ts";

const options = { skip: withoutGoIpfs, timeout: 120_000 };

interface Made {
  readonly repo: string;
  /** CID of a pinned directory that contains the file `b/c`. */
  readonly tree: string;
  /** CID of a directly pinned node. */
  readonly direct: string;
  readonly root: string;
  /** CID of a file that the filestore refers to. */
  readonly referred: string;
  readonly garbage: string;
}

async function made(t: TestContext): Promise<Made> {
  const folder = await emptyFolder(t);
  const repo = join(folder, "repo");
  await go(repo, ["init", "--profile=test"]);
  await go(repo, ["config", "--json", "Experimental.FilestoreEnabled", "true"]);
  await go(repo, ["files", "mkdir", "-p", "/a/b"]);
  await go(repo, ["files", "write", "--create", "/a/b/c"], "in the namespace");
  const tree = (await go(repo, ["files", "stat", "--hash", "/a"])) as string;
  await go(repo, ["pin", "add", tree]);
  const direct = await go(repo, ["add", "-q", "--pin=false"], "pinned by itself");
  await go(repo, ["pin", "add", "--recursive=false", direct]);
  await go(repo, ["files", "rm", "-r", "/a"]);
  await go(repo, ["files", "write", "--create", "/later"], "what is left");
  await writeFile(join(folder, "outside"), "bytes of a file");
  const referred = await go(repo, ["add", "-q", "--nocopy", join(folder, "outside")]);
  const garbage = await go(repo, ["add", "-q", "--pin=false", "--cid-version=1"], "nobody wants it");
  return { repo, tree, direct, referred, garbage, root: await go(repo, ["files", "stat", "--hash", "/"]) };
}

const pinned = async (repo: string) => ({
  recursive: (await go(repo, ["pin", "ls", "-q", "--type=recursive"])).split("\n").sort(),
  direct: (await go(repo, ["pin", "ls", "-q", "--type=direct"])).split("\n").sort(),
});

test("a repo of go-ipfs opens, and garbage collection retains what go-ipfs would retain", options, async (t) => {
  const { repo, tree, root, referred, garbage } = await made(t);
  const pins = await pinned(repo);
  const twin = `${repo}-twin`;
  await cp(repo, twin, { recursive: true });
  const removed = (await go(twin, ["repo", "gc", "-q"])).split("\n").sort();
  await opened(repo, async (node) => {
    assert.deepEqual(await pinsOf(node), pins);
    assert.equal(await rootOf(node), root);
    // go-ipfs has published its name when it created the repo.
    const [[key] = assert.fail(), ...more] = await Array.fromAsync(node.metadata.range({ prefix: "ipns/" }));
    assert.deepEqual([key, more], [`ipns/${base32(node.repo.identity.peerId.toMultihash().bytes)}`, []]);
    assert.deepEqual(await collected(node), removed);
    assert.ok(removed.includes(garbage));
    assert.equal(await fileAt(node, `${tree}/b/c`), "in the namespace");
    assert.equal(await fileAt(node, `${root}/later`), "what is left");
    assert.equal(await fileAt(node, referred), "bytes of a file");
  });
  // go-ipfs can still open the repo.
  assert.deepEqual(await pinned(repo), pins);
  assert.equal(await go(repo, ["cat", `${tree}/b/c`]), "in the namespace");
  assert.match(await go(repo, ["repo", "verify"]), /all blocks validated/);
  assert.deepEqual(await go(repo, ["repo", "gc", "-q"]), "");
});

test(
  "the daemon of go-ipfs reads blocks of this node, and this node reads blocks of the daemon",
  options,
  async (t) => {
    const { repo } = await made(t);
    const text = "written by this node";
    const cid = parseCid(await go(repo, ["add", "-q", "--only-hash", "--raw-leaves"], text));
    await opened(repo, async (node) => {
      await node.blocks.put([{ cid, bytes: Buffer.from(text) }]);
      await node.pins.keep([cid]);
      await node.sync();
    });
    const stop = await goDaemon(t, repo);
    assert.equal(await go(repo, ["cat", cid.toString()]), text);
    const theirs = await go(repo, ["add", "-q", "--raw-leaves"], "written by go-ipfs");
    await assert.rejects(openNode({ repo, offline: true }), {
      code: "REPO_LOCKED",
      message: `lock ${join(repo, "repo.lock")}: someone else has the lock`,
    });
    assert.equal(await go(repo, ["cat", theirs]), "written by go-ipfs");
    await stop();
    await opened(repo, async (node, notices) => {
      assert.deepEqual(notices, ["go-ipfs has used the repo: 1 of its pins and files were imported"]);
      assert.equal(await fileAt(node, theirs), "written by go-ipfs");
      const { recursive } = await pinsOf(node);
      assert.ok(recursive.includes(theirs) && recursive.includes(cid.toString()));
    });
  },
);

test("go-ipfs cannot open a repo that this node has open", options, async (t) => {
  const { repo, tree } = await made(t);
  await opened(repo, async () => {
    const { code, stderr } = await runGoIpfs(repo, ["cat", tree]);
    assert.notEqual(code, 0);
    assert.match(stderr, /lock/);
  });
  assert.match(await go(repo, ["ls", tree]), /b\/$/);
});

test("a repo can be migrated to other stores and back, and go-ipfs then finds all its content", options, async (t) => {
  const { repo, tree, root, referred } = await made(t);
  const pins = await pinned(repo);
  const segments = `${repo}-segments`;
  const back = `${repo}-back`;
  await migrateRepo(repo, segments);
  await migrateRepo(segments, back);
  assert.deepEqual(await pinned(back), pins);
  assert.equal(await go(back, ["files", "stat", "--hash", "/"]), root);
  assert.equal(await go(back, ["files", "read", "/later"]), "what is left");
  assert.equal(await go(back, ["cat", `${tree}/b/c`]), "in the namespace");
  assert.equal(await go(back, ["cat", referred]), "bytes of a file");
  assert.match(await go(back, ["repo", "verify"]), /all blocks validated/);
  assert.equal((await go(back, ["filestore", "verify"])).split(" ")[0], "ok");
  const stat = async (path: string) => /NumObjects: (\d+)/.exec(await go(path, ["repo", "stat"]))?.[1];
  assert.equal(await stat(back), await stat(repo));
  assert.equal(await go(back, ["config", "Identity.PeerID"]), await go(repo, ["config", "Identity.PeerID"]));
  assert.equal(await readFile(join(back, "version"), "utf8"), "11\n");
});
