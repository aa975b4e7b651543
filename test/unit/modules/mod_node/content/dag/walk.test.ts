import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { walk, walkPages } from "#node/content/dag/walk.ts";
import { raw } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";

/** Blocks by CID, with the number of reads of each. */
class Graph {
  readonly #blocks = new Map<string, Uint8Array>();
  readonly reads: string[] = [];

  async node(name: string, children: readonly CID[] = []): Promise<CID> {
    const links = children.map((cid) => ({ name: "", size: 0, cid }));
    return this.#keep(encodePb({ data: Buffer.from(name), links }), undefined);
  }

  async leaf(text: string): Promise<CID> {
    return this.#keep(Buffer.from(text), raw);
  }

  async #keep(bytes: Uint8Array, codec: number | undefined): Promise<CID> {
    const digest = await multihash(sha256, bytes);
    const cid = codec === undefined ? CID.createV0(digest as never) : CID.createV1(codec, digest);
    this.#blocks.set(cid.toString(), bytes);
    return cid;
  }

  readonly read = async (cid: CID): Promise<Uint8Array> => {
    this.reads.push(cid.toString());
    const bytes = this.#blocks.get(cid.toString());
    if (bytes === undefined) throw new Error(`missing ${cid}`);
    return bytes;
  };
}

async function order(root: CID, options: Parameters<typeof walk>[1]): Promise<string[]> {
  const found: string[] = [];
  for await (const { cid } of walk(root, options)) found.push(cid.toString());
  return found;
}

test("parents come before children, and children in the order of their links", async () => {
  const graph = new Graph();
  const a = await graph.node("a");
  const b = await graph.node("b");
  const c = await graph.node("c");
  const left = await graph.node("left", [a, b]);
  const root = await graph.node("root", [left, c]);
  assert.deepEqual(await order(root, { read: graph.read }), [root, left, a, b, c].map(String));
});

test("a walk of 40 levels of doubled links reads each block once", async () => {
  const graph = new Graph();
  let root = await graph.node("bottom");
  for (let level = 0; level < 40; level += 1) root = await graph.node(`level ${level}`, [root, root]);
  assert.equal((await order(root, { read: graph.read })).length, 41);
  assert.equal(graph.reads.length, 41);
});

test("raw leaves need not be read", async () => {
  const graph = new Graph();
  const leaf = await graph.leaf("leaf");
  const root = await graph.node("root", [leaf]);
  assert.deepEqual(await order(root, { read: graph.read, skipLeaves: true }), [root, leaf].map(String));
  assert.deepEqual(graph.reads, [root.toString()]);
});

test("a walk of 15,000 levels does not exhaust the stack", async () => {
  const graph = new Graph();
  let root = await graph.node("bottom");
  for (let level = 0; level < 15_000; level += 1) root = await graph.node("", [root]);
  assert.equal((await order(root, { read: graph.read })).length, 15_001);
});

test("a missing block ends the walk when its turn comes", async () => {
  const graph = new Graph();
  const missing = await new Graph().node("missing");
  const there = await graph.node("there");
  const root = await graph.node("root", [there, missing]);
  const found: string[] = [];
  await assert.rejects(async () => {
    for await (const { cid } of walk(root, { read: graph.read })) found.push(cid.toString());
  }, /missing/);
  assert.deepEqual(found, [root, there].map(String));
});

test("many small blocks are requested together, each once, in the same order whether they are in memory or not", async () => {
  const graph = new Graph();
  const leaves = await Promise.all(Array.from({ length: 100 }, (_, at) => graph.leaf(`leaf ${at % 90}`)));
  const root = await graph.node("root", leaves);
  const expected = [root, ...leaves.slice(0, 90)].map(String);
  assert.deepEqual(await order(root, { read: graph.read }), expected);
  assert.deepEqual(graph.reads.toSorted(), expected.toSorted());
  for (const every of [1, 2]) {
    let most = 0;
    let given = 0;
    const peek = (cids: readonly CID[]) => {
      most = Math.max(most, cids.length);
      return cids.map((_, at) => {
        if (at % every !== 0) return undefined;
        given += 1;
        return Buffer.from("at hand");
      });
    };
    graph.reads.length = 0;
    const read = Object.assign((cid: CID) => graph.read(cid), { peek });
    assert.deepEqual(await order(root, { read }), expected);
    assert.equal(graph.reads.length + given, expected.length);
    assert.ok(most > 8 && most <= 64, `${most} together`);
  }
});

test("blocks in memory come together, and are not delayed by a block that needs a wait", async () => {
  const graph = new Graph();
  const leaves = await Promise.all(Array.from({ length: 100 }, (_, at) => graph.leaf(`leaf ${at}`)));
  const root = await graph.node("root", leaves);
  const late = leaves[60] as CID;
  const { promise: arrival, resolve: arrive } = Promise.withResolvers<void>();
  const read = Object.assign(
    async (cid: CID) => {
      if (cid.equals(late)) await arrival;
      return graph.read(cid);
    },
    { peek: (cids: readonly CID[]) => cids.map((cid) => (cid.equals(late) ? undefined : Buffer.from("at hand"))) },
  );
  const pages = walkPages(root, { read });
  const found: string[] = [];
  let most = 0;
  const gather = async (upTo: number) => {
    while (found.length < upTo) {
      const { value = [] } = await pages.next();
      most = Math.max(most, value.length);
      found.push(...value.map(({ cid }) => cid.toString()));
    }
  };
  const expected = [root, ...leaves].map(String);
  await gather(61);
  assert.deepEqual(found, expected.slice(0, 61));
  assert.ok(most > 8 && most <= 64, `${most} together`);
  arrive();
  await gather(101);
  assert.deepEqual(found, expected);
  assert.equal((await pages.next()).done, true);
});
