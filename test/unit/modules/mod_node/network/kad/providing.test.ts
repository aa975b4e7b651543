import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { create } from "multiformats/hashes/digest";
import { sha256 } from "multiformats/hashes/sha2";
import { Pins } from "#node/content/pins/pins.ts";
import { dagPb } from "#node/formats/cid/codecs.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { ProvideQueue } from "#node/network/kad/provide_queue.ts";
import { Reprovider } from "#node/network/kad/reprovider.ts";
import { announcingSettings } from "#node/network/kad/strategies.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { ConfigFile } from "#node/storage/repo/config.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { NodeLog } from "#node/util/log.ts";

const cidOf = async (text: string) => CID.createV1(raw.code, await sha256.digest(Buffer.from(text)));
const turns = async (count = 20) => {
  for (let left = count; left > 0; left -= 1) await nextTurn();
};

function clockOf(context: TestContext) {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_700_000_000_000 });
  return {
    async pass(milliseconds: number) {
      context.mock.timers.tick(milliseconds);
      await turns(60);
    },
  };
}

/** Tests which blocks are announced, and when that is possible. */
function world(metadata = memoryMetadata()) {
  const state = { peers: 0, under: 0, most: 0, announced: [] as string[], gate: Promise.resolve() };
  const parts = {
    metadata,
    log: new NodeLog(),
    workers: () => 2,
    ready: () => state.peers > 0,
    async provide(cid: CID, signal: AbortSignal) {
      state.under += 1;
      state.most = Math.max(state.most, state.under);
      await state.gate;
      await nextTurn();
      state.under -= 1;
      signal.throwIfAborted();
      if (state.peers === 0) throw new Error("nobody");
      state.announced.push(cid.toString());
    },
  };
  return { state, parts, metadata };
}

test("queued CIDs wait for a peer, and a limited number is provided concurrently", async (context) => {
  const clock = clockOf(context);
  const { state, parts } = world();
  const announcements = new ProvideQueue(parts);
  const cids = await Promise.all(["a", "b", "c", "d", "e"].map(cidOf));
  announcements.add(cids);
  announcements.add(cids.slice(0, 2));
  await clock.pass(1000);
  assert.deepEqual([state.announced, announcements.size], [[], 0]);
  state.peers = 1;
  assert.equal(announcements.size, cids.length);
  announcements.run();
  await turns(60);
  assert.deepEqual(state.announced.toSorted(), cids.map(String).toSorted());
  assert.deepEqual([state.most, announcements.size], [parts.workers(), 0]);
  await announcements.stop();
});

test("one CID is provided at a time while further ones are added", async (context) => {
  const clock = clockOf(context);
  const { state, parts } = world();
  const announcements = new ProvideQueue(parts);
  state.peers = 1;
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  for (const text of ["a", "b", "c", "d", "e"]) {
    announcements.add([await cidOf(text)]);
    await clock.pass(200);
    assert.equal(state.under, 1);
  }
  await clock.pass(200);
  assert.equal(state.under, parts.workers());
  gate.resolve();
  await turns(60);
  assert.equal(state.announced.length, 5);
  await announcements.stop();
});

test("queued CIDs survive closing the node", async () => {
  const { state, parts, metadata } = world();
  const first = new ProvideQueue(parts);
  const cids = await Promise.all(["a", "b", "c"].map(cidOf));
  first.add(cids);
  await first.stop();
  const second = new ProvideQueue(parts);
  state.peers = 1;
  await second.start();
  await turns(40);
  await second.stop();
  assert.deepEqual(state.announced.toSorted(), cids.map(String).toSorted());
  assert.deepEqual(await Array.fromAsync(metadata.range({ prefix: "routing/" })), []);
});

test("a CID is provided again when all peers left meanwhile", async () => {
  const { state, parts } = world();
  const announcements = new ProvideQueue(parts);
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  state.peers = 1;
  const cid = await cidOf("a");
  announcements.add([cid]);
  await turns();
  state.peers = 0;
  gate.resolve();
  await turns();
  assert.deepEqual(state.announced, []);
  state.peers = 1;
  announcements.run();
  await turns();
  assert.deepEqual(state.announced, [cid.toString()]);
  await announcements.stop();
});

test("new blocks are provided when the additions pause, with two workers reserved for roots", async (context) => {
  const clock = clockOf(context);
  const { state, parts } = world();
  const announcements = new ProvideQueue({ ...parts, workers: () => 4 });
  state.peers = 1;
  const blocks = await Promise.all(["a", "b", "c", "d", "e"].map(cidOf));
  for (const cid of blocks) {
    announcements.addBlocks([cid]);
    await clock.pass(200);
  }
  assert.deepEqual(state.announced, []);
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  await clock.pass(100);
  assert.equal(state.under, 2);
  announcements.add([await cidOf("root")]);
  await turns();
  assert.equal(state.under, 2, "while adding goes on, so many are enough");
  await clock.pass(300);
  assert.equal(state.under, 3);
  gate.resolve();
  for (let round = 0; round < 5; round += 1) await clock.pass(50);
  assert.deepEqual(state.announced.toSorted(), [...blocks, await cidOf("root")].map(String).toSorted());
  assert.equal(announcements.size, 0);
  await announcements.stop();
});

test("an endless stream of new blocks is provided one at a time", async (context) => {
  const clock = clockOf(context);
  const { state, parts } = world();
  const announcements = new ProvideQueue(parts);
  state.peers = 1;
  for (let round = 0; round < 60; round += 1) {
    announcements.addBlocks([await cidOf(`${round}`)]);
    await clock.pass(200);
  }
  assert.equal(state.most, 1);
  assert.ok(state.announced.length > 0);
  await announcements.stop();
});

test("a root that is among the new blocks is provided as a root, by its multihash", async (context) => {
  const clock = clockOf(context);
  const { state, parts } = world();
  const announcements = new ProvideQueue(parts);
  state.peers = 1;
  const root = await cidOf("root");
  announcements.addBlocks([root, CID.createV0((await cidOf("leaf")).multihash)]);
  announcements.add([CID.createV0(root.multihash), root]);
  await clock.pass(1000);
  await clock.pass(1000);
  assert.deepEqual(state.announced, [String(CID.createV0(root.multihash)), String(await cidOf("leaf"))]);
  await announcements.stop();
});

test("a CID that contains its block is not provided", async () => {
  const { state, parts, metadata } = world();
  const announcements = new ProvideQueue(parts);
  state.peers = 1;
  announcements.add([CID.createV1(raw.code, create(0, Buffer.alloc(5000)))]);
  assert.equal(announcements.size, 0);
  await announcements.stop();
  assert.deepEqual(await Array.fromAsync(metadata.range({ prefix: "routing/" })), []);
});

test("new blocks are queued in limited memory, and dropped without a peer and at a restart", async () => {
  const { state, parts, metadata } = world();
  const announcements = new ProvideQueue(parts);
  const many = Array.from({ length: 20_000 }, (_, at) => {
    const digest = Buffer.alloc(32);
    digest.writeUInt32LE(at);
    return CID.createV1(raw.code, create(sha256.code, digest));
  });
  announcements.addBlocks(many);
  state.peers = 1;
  assert.equal(announcements.size, 0);
  announcements.addBlocks(many);
  assert.equal(announcements.size, 16_384);
  await announcements.stop();
  assert.deepEqual(await Array.fromAsync(metadata.range({ prefix: "routing/" })), []);
});

const config = (values: Readonly<Record<string, unknown>>) =>
  ({ config: { value: (path: string) => values[path] } as unknown as ConfigFile }) as const;

/**
 * Creates two pinned blocks, one of which links to another block, and a block that is not pinned.
 */
async function roundsOf(values: Readonly<Record<string, unknown>>, made = world()) {
  const blocks = new BlockService(memoryBlocks());
  const pins = new Pins(blocks, memoryMetadata(), new SharedLock());
  const leaf = { cid: await cidOf("leaf"), bytes: Buffer.from("leaf") };
  const { encode, code } = await import("@ipld/dag-cbor");
  const bytes = encode({ leaf: leaf.cid });
  const root = { cid: CID.createV1(code, await sha256.digest(bytes)), bytes };
  const direct = { cid: await cidOf("direct"), bytes: Buffer.from("direct") };
  const loose = { cid: await cidOf("loose"), bytes: Buffer.from("loose") };
  await blocks.put([leaf, root, direct, loose]);
  await pins.add(root.cid, "recursive");
  await pins.add(direct.cid, "direct");
  const rounds = new Reprovider({ ...made.parts, repo: config(values), blocks, pins });
  const names = { leaf: `${leaf.cid}`, root: `${root.cid}`, direct: `${direct.cid}`, loose: `${loose.cid}` };
  return { ...made, rounds, names };
}

test("the strategy decides what is provided again", async () => {
  const named: Record<string, readonly string[]> = {
    all: ["leaf", "root", "direct", "loose"],
    "": ["leaf", "root", "direct", "loose"],
    pinned: ["leaf", "root", "direct"],
    roots: ["root", "direct"],
  };
  for (const [strategy, kinds] of Object.entries(named)) {
    const { rounds, state, names } = await roundsOf({ "Reprovider.Strategy": strategy });
    state.peers = 1;
    await rounds.run();
    const wanted = kinds.map((kind) => names[kind as keyof typeof names]);
    assert.deepEqual(state.announced.toSorted(), wanted.toSorted(), strategy);
    assert.equal(rounds.last.provided, wanted.length);
  }
});

test("mfs announces the mutable files, entities omits the blocks inside files, and unknown strategies are refused", async () => {
  const blocks = new BlockService(memoryBlocks());
  const pins = new Pins(blocks, memoryMetadata(), new SharedLock());
  const put = async (code: number, bytes: Uint8Array) => {
    const cid = CID.createV1(code, await sha256.digest(bytes));
    await blocks.put([{ cid, bytes }]);
    return cid;
  };
  const linkTo = (name: string, cid: CID) => ({ cid, name, size: 1 });
  const unixfs = (type: "File" | "Directory", links: readonly ReturnType<typeof linkTo>[]) =>
    put(dagPb, encodePb({ data: encodeUnixfs({ type }), links }));
  const chunks = [await put(raw.code, Buffer.from("one")), await put(raw.code, Buffer.from("two"))];
  const file = await unixfs(
    "File",
    chunks.map((cid) => linkTo("", cid)),
  );
  const small = await put(raw.code, Buffer.from("small"));
  const missing = await cidOf("not here");
  const links = [linkTo("file", file), linkTo("missing", missing), linkTo("small", small)];
  const folder = await unixfs("Directory", links);
  await pins.add(file, "recursive");
  const deps = { blocks, pins, filesRoot: async () => folder };
  const announced = async (strategy: string) => {
    const value = (path: string) => (path === "Reprovider.Strategy" ? strategy : "");
    const { strategy: chosen } = announcingSettings({ value } as unknown as ConfigFile);
    const cids = await Array.fromAsync(chosen(deps, new AbortController().signal));
    return cids.map(String).sort();
  };
  const names = (...cids: readonly CID[]) => cids.map(String).sort();
  assert.deepEqual(await announced("mfs"), names(folder, file, ...chunks, small));
  assert.deepEqual(await announced("mfs+entities"), names(folder, file, small));
  assert.deepEqual(await announced("pinned+unique"), names(file, ...chunks));
  assert.deepEqual(await announced("pinned+mfs+unique+entities"), names(file, folder, small));
  // A direct pin does not cover the blocks below it, but the files do.
  await pins.add(folder, "direct");
  assert.deepEqual(await announced("pinned+mfs"), names(folder, file, ...chunks, small));
  for (const odd of ["all+unique", "roots+mfs", "entities", "pinned+odd", "pinned+"]) {
    await assert.rejects(announced(odd), { message: `unknown reprovider strategy '${odd}'` });
  }
});

test("the reprovider never runs twice at a time, nor without peers", async () => {
  const { rounds, state } = await roundsOf({});
  await assert.rejects(rounds.run(), { message: "failed to find any peer in table" });
  state.peers = 1;
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  const first = rounds.run();
  await assert.rejects(rounds.run(), { message: "reprovider is already running" });
  gate.resolve();
  await first;
  await rounds.run();
  const leaving = new AbortController();
  const reason = new Error("left");
  const left = rounds.run(leaving.signal);
  leaving.abort(reason);
  await assert.rejects(left, reason);
});

const minute = 60_000;
const hour = 60 * minute;

test("the reprovider runs a minute after the start, and keeps its interval across restarts", async (context) => {
  const clock = clockOf(context);
  const made = world();
  made.state.peers = 1;
  const { rounds, state } = await roundsOf({ "Reprovider.Interval": "12h", "Reprovider.Strategy": "roots" }, made);
  await rounds.start();
  await clock.pass(minute - 1);
  assert.equal(state.announced.length, 0);
  await clock.pass(1);
  assert.equal(state.announced.length, 2);
  await clock.pass(6 * hour);
  rounds.stop();
  const { rounds: next } = await roundsOf({ "Reprovider.Interval": "12h", "Reprovider.Strategy": "roots" }, made);
  await next.start();
  await clock.pass(6 * hour - 1);
  assert.equal(state.announced.length, 2);
  await clock.pass(1);
  assert.equal(state.announced.length, 4);
  next.stop();
});

test("a run that finds no peers starts with the first peer", async (context) => {
  const clock = clockOf(context);
  const { rounds, state } = await roundsOf({ "Reprovider.Interval": "30s", "Reprovider.Strategy": "roots" });
  await rounds.start();
  await clock.pass(30_000);
  rounds.runIfDue();
  await turns();
  assert.equal(state.announced.length, 0);
  state.peers = 1;
  rounds.runIfDue();
  await turns(60);
  assert.equal(state.announced.length, 2);
  await clock.pass(30_000);
  assert.equal(state.announced.length, 4);
  rounds.stop();
});

test("without an interval the reprovider does not run", async (context) => {
  const clock = clockOf(context);
  const { rounds, state } = await roundsOf({ "Reprovider.Interval": "0" });
  state.peers = 1;
  await rounds.start();
  await clock.pass(100 * hour);
  assert.equal(state.announced.length, 0);
  rounds.stop();
});
