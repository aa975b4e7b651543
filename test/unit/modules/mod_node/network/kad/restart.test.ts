import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { sha256 } from "multiformats/hashes/sha2";
import { publicKeyKey } from "#node/network/ipns_record/keys.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { add, known, meet, ofType, outcome, providersIn, soon, startNode, until, untilProvided } from "./support.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-routing-"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("records of peers survive a restart", async () => {
  await using giver = await startNode();
  const keeper = await startNode({ folder: join(folder, "keeper") });
  await meet(giver, keeper);
  const cid = await add(giver, "kept by another");
  // A node that stores a provider's record itself queries no other peers.
  await until(async () => {
    const { events } = await outcome(keeper.routing.findProviders(cid, { count: 1, signal: soon() }));
    return providersIn(events).length === 1 && ofType(events, "sendingQuery").length === 0;
  });
  const { id, publicKey } = await generateKey({ type: "ed25519" });
  const key = publicKeyKey(id);
  await giver.routing.putQuietly(key, publicKey, soon());
  await keeper[Symbol.asyncDispose]();

  await using again = await startNode({ folder: join(folder, "keeper") });
  await using asker = await startNode();
  await meet(asker, again);
  const providers = await outcome(asker.routing.findProviders(cid, { count: 1, signal: soon() }));
  assert.deepEqual(providersIn(providers.events), [giver.id.toString()]);
  const got = await outcome(asker.routing.get(key, soon()));
  assert.deepEqual(Buffer.from(got.events.at(-1)?.value ?? []), Buffer.from(publicKey));
});

test("queued CIDs are provided after a restart, once a peer is there", async () => {
  const alone = await startNode({ folder: join(folder, "alone") });
  const cid = await add(alone, "nobody hears of it");
  assert.deepEqual([alone.routing.queued, alone.routing.provideStat.total], [0, 0]);
  await alone[Symbol.asyncDispose]();

  await using again = await startNode({ folder: join(folder, "alone") });
  await using other = await startNode();
  await meet(again, other);
  await until(() => again.routing.provideStat.total === 1);
  await untilProvided(other, cid, again);
});

test("a peer of the routing table is known after a restart", async () => {
  await using other = await startNode();
  const first = await startNode({ folder: join(folder, "member") });
  await meet(first, other);
  // The tag of a peer in the routing table is written after its entry in the peer store.
  await until(async () => {
    const { tags } = await first.network.libp2p.peerStore.get(other.id);
    return tags.has("kad-peer");
  });
  await first[Symbol.asyncDispose]();
  await using again = await startNode({ folder: join(folder, "member") });
  await until(() => known(again) === 1);
});

test("with Experimental.StrategicProviding only commands provide", async () => {
  await using quiet = await startNode({ config: { "Experimental.StrategicProviding": true } });
  await using other = await startNode();
  await meet(quiet, other);
  const cid = await add(quiet, "not announced");
  await quiet.routing.reprovide(soon());
  assert.deepEqual([quiet.routing.queued, quiet.routing.provideStat.total], [0, 0]);
  assert.equal((await outcome(quiet.routing.provide(cid, soon()))).failure, undefined);
  await untilProvided(other, cid, quiet);
});

test("Provide.Strategy announces single new blocks only with `all`, and roots with every value", async () => {
  await using node = await startNode({ config: { "Provide.Strategy": "roots" } });
  await using other = await startNode();
  await meet(node, other);
  const bytes = Buffer.from("a block alone");
  const cid = CID.createV1(raw.code, await sha256.digest(bytes));
  await node.node.blocks.put([{ cid, bytes }]);
  assert.equal(node.routing.queued, 0);
  const root = await add(node, "a root");
  await untilProvided(other, root, node);
  await node.node.repo.config.set("Provide.Strategy", () => "all");
  const more = Buffer.from("another block");
  const next = CID.createV1(raw.code, await sha256.digest(more));
  await node.node.blocks.put([{ cid: next, bytes: more }]);
  await untilProvided(other, next, node);
  const { events } = await outcome(other.routing.findProviders(cid, { count: 1, signal: soon() }));
  assert.deepEqual(providersIn(events), []);
});

test("the reprovider provides everything that is stored", async () => {
  await using node = await startNode({ config: { "Reprovider.Interval": "0" } });
  await using other = await startNode();
  const cids = [];
  for (const text of ["one", "two", "three"]) cids.push(await add(node, text));
  await meet(node, other);
  await until(() => node.routing.provideStat.total >= cids.length && node.routing.queued === 0);
  await node.routing.reprovide(soon());
  const stored = await Array.fromAsync(node.node.blocks.store.keys());
  assert.equal(node.routing.provideStat.lastReprovide.provided, stored.length);
  assert.ok(stored.length > cids.length);
  for (const cid of stored) await untilProvided(other, cid, node);
});
