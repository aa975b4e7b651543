import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { CID } from "multiformats/cid";
import { createNode, type Node } from "#node/index.ts";
import { peer as bitswapPeer, blockOf, connect, until } from "../../network/bitswap/support.ts";

async function opened(t: TestContext): Promise<{ readonly node: Node; deny(...items: string[]): Promise<void> }> {
  const repo = await mkdtemp(join(tmpdir(), "modhost-denied-"));
  const node = await createNode({ repo, offline: true });
  t.after(async () => {
    await node.stop();
    await rm(repo, { recursive: true, force: true });
  });
  const deny = async (...items: string[]) => {
    await mkdir(join(repo, "denylists"), { recursive: true });
    await writeFile(join(repo, "denylists", "test.deny"), `${items.join("\n")}\n`);
    await node.lowLevel.denylists.reread();
  };
  return { node, deny };
}

async function all(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece);
  return Buffer.concat(parts).toString();
}

/** Adds a folder with `bad` and `sub/good`. */
async function site(node: Node): Promise<{ readonly root: CID; readonly bad: CID }> {
  const found = new Map<string, CID>();
  const files = [
    { path: "site/bad", content: "bad" },
    { path: "site/sub/good", content: "good" },
  ];
  for await (const { path, cid } of node.addAll(files, { cidVersion: 1, rawLeaves: true })) found.set(path, cid);
  return { root: found.get("site") as CID, bad: found.get("site/bad") as CID };
}

const is = (path: string) => ({ code: "CONTENT_BLOCKED", message: `${path} is blocked and cannot be provided` });

test("a denied block cannot be read by any path, and without lists nothing is checked", async (t) => {
  const { node, deny } = await opened(t);
  const { root, bad } = await site(node);
  assert.equal(node.lowLevel.blocks.denials, undefined);
  await deny(`/ipfs/${bad}`);
  await assert.rejects(node.block.get(bad), is(`/ipfs/${bad}`));
  await assert.rejects(node.block.stat(bad), is(`/ipfs/${bad}`));
  await assert.rejects(all(node.cat(`/ipfs/${root}/bad`)), is(String(bad)));
  await assert.rejects(node.block.put(Buffer.from("bad"), { format: "raw", version: 1 }), is(String(bad)));
  assert.equal(await all(node.cat(`/ipfs/${root}/sub/good`)), "good");
  await deny("# nothing");
  assert.equal(node.lowLevel.blocks.denials, undefined);
  assert.equal(await all(node.cat(`/ipfs/${root}/bad`)), "bad");
});

test("a denied path is not resolved, but its content can be read by its CID", async (t) => {
  const { node, deny } = await opened(t);
  const { root, bad } = await site(node);
  await deny(`/ipfs/${root}/sub/*`, `/ipfs/${root}/bad`);
  await assert.rejects(node.resolve(`/ipfs/${root}/sub`), is(`/ipfs/${root}/sub`));
  await assert.rejects(all(node.cat(`/ipfs/${root}/sub/good`)), is(`/ipfs/${root}/sub/good`));
  await assert.rejects(all(node.cat(`/ipfs/${root}/bad`)), is(`/ipfs/${root}/bad`));
  assert.equal(await all(node.cat(`/ipfs/${bad}`)), "bad");
});

test("a denied name is not resolved, and neither are names that lead to denied content", async (t) => {
  const { node, deny } = await opened(t);
  const { root } = await site(node);
  await node.name.publish(`/ipfs/${root}`, { allowOffline: true });
  const { id } = await node.id();
  await deny(`/ipfs/${root}/bad`);
  await assert.rejects(all(node.cat(`/ipns/${id}/bad`)), is(`/ipfs/${root}/bad`));
  assert.equal(await all(node.cat(`/ipns/${id}/sub/good`)), "good");
  await deny(`/ipns/${id}/sub*`);
  await assert.rejects(all(node.cat(`/ipns/${id}/sub/good`)), is(`/ipns/${id}/sub/good`));
  await deny(`/ipns/${id}`);
  await assert.rejects(all(node.cat(`/ipns/${id}/sub/good`)), is(`/ipns/${id}`));
  await assert.rejects(node.lowLevel.names.resolve(String(id)), is(`/ipns/${id}`));
});

test("garbage collection spares the pinned blocks below a denied block", async (t) => {
  const { node, deny } = await opened(t);
  const { root } = await site(node);
  await deny(`/ipfs/${root}`);
  for await (const result of node.repo.gc()) assert.equal(result.err, undefined);
  await deny();
  assert.equal(await all(node.cat(`/ipfs/${root}/sub/good`)), "good");
});

test("denied content can be listed among the pins, unpinned and removed", async (t) => {
  const { node, deny } = await opened(t);
  const { root, bad } = await site(node);
  await deny(`/ipfs/${root}/*`, `/ipfs/${bad}`);
  for await (const { type } of node.pin.ls({ paths: [`/ipfs/${root}/bad`] })) assert.match(type, /^indirect through/);
  assert.ok((await node.pin.rm(root)).equals(root));
  for await (const { error } of node.block.rm(`/ipfs/${root}/bad`)) assert.equal(error, undefined);
  assert.equal(await node.lowLevel.blocks.has(bad), false);
});

test("a denied block is neither sent to peers nor requested from them", async (t) => {
  const [a, b] = await Promise.all([bitswapPeer(t), bitswapPeer(t)]);
  const [bad, good] = [blockOf(Buffer.alloc(2000, 1)), blockOf(Buffer.alloc(2000, 2))] as const;
  const denials = {
    denies: (cid: CID) => cid.equals(bad.cid),
    requireBlock(cid: CID) {
      if (cid.equals(bad.cid)) throw new Error("denied");
    },
  };
  await a.blocks.put([bad, good]);
  a.blocks.denials = denials;
  await connect(b, a);
  const ending = new AbortController();
  const waiting = assert.rejects(b.blocks.get(bad.cid, { signal: ending.signal }));
  await until(() => a.bitswap.wantlist(b.id).some((cid) => cid.equals(bad.cid)), "the peer asks");
  assert.equal((await b.blocks.get(good.cid)).length, 2000);
  assert.equal(a.bitswap.stat().blocksSent <= 1, true);
  assert.equal(await b.blocks.has(bad.cid), false);
  ending.abort(new Error("enough"));
  await waiting;
  b.blocks.denials = denials;
  await assert.rejects(b.blocks.get(bad.cid), { message: "denied" });
});
