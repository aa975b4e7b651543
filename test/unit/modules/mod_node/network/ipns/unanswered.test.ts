/** Publishes and resolves while other nodes are slow. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { memoryStores } from "modhost/node";
import type { NameNetwork } from "#node/network/ipns/record_transports.ts";
import { publishedKey } from "#node/network/ipns_record/keys.ts";
import { decodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import type { LocalNode } from "#node/node/node.ts";
import { openNode } from "#node/node/open.ts";

const empty = "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const other = "/ipfs/bafkqaaa";
const hour = 3_600_000;

type Routing = Pick<NameNetwork["routing"], "search" | "putQuietly">;

/** A node whose routing system the test controls. */
async function start(t: TestContext, routing: Partial<Routing>) {
  const repo = await mkdtemp(join(tmpdir(), "modhost-unanswered-"));
  const node = (await openNode({ repo, offline: true, stores: async () => memoryStores() })) as LocalNode;
  t.after(async () => {
    await node.close();
    await rm(repo, { recursive: true, force: true });
  });
  const nobody: Routing = { async *search() {}, async putQuietly() {} };
  const router = { search: nobody.search, put: nobody.putQuietly };
  const network = { libp2p: { services: {} }, routing: { ...nobody, ...routing, dht: {}, router }, pubsub: undefined };
  await node.names.goOnline(network as unknown as NameNetwork);
  // The node's own name has been published by now.
  await node.keys.generate("new", { type: "ed25519" });
  const key = await node.names.key("new");
  return { node, names: node.names, key };
}

/** A request to which the test responds; `requested` resolves when it has arrived. */
function question<T>() {
  const requested = Promise.withResolvers<void>();
  const respond = Promise.withResolvers<T>();
  return {
    requested: requested.promise,
    come: requested.resolve,
    respond: respond.resolve,
    responded: respond.promise,
  };
}

test("a name resolves locally to the last published record, in whatever order peers stored records", async (t) => {
  const slow = question<void>();
  let reported = 0;
  const { names, key } = await start(t, {
    putQuietly: async () => {
      reported += 1;
      if (reported > 1) return;
      slow.come();
      await slow.responded;
    },
  });
  const first = names.publish(key, empty);
  await slow.requested;
  await names.publish(key, other);
  slow.respond();
  await first;
  assert.equal(await names.resolve(key.id.toString()), other);
});

test("a record published during a search takes precedence", async (t) => {
  const slow = question<void>();
  const { names, key } = await start(t, {
    async *search() {
      slow.come();
      await slow.responded;
      yield* [];
    },
  });
  await names.publish(key, empty, { ttl: hour, offline: true });
  const pending = names.resolve(key.id.toString(), { nocache: true });
  await slow.requested;
  await names.publish(key, other, { ttl: hour });
  slow.respond();
  assert.equal(await pending, other);
  assert.equal(await names.resolve(key.id.toString()), other);
});

test("a key can be published while its last record is being searched", async (t) => {
  const slow = question<Uint8Array>();
  const { node, names, key } = await start(t, {
    async *search() {
      slow.come();
      yield await slow.responded;
    },
  });
  const claim = { value: Buffer.from(other), validity: formatTimestamp(timestampAfter(hour)), ttl: 0n };
  const pending = names.publish(key, `${empty}/a`);
  await slow.requested;
  await names.publish(key, empty, { offline: true });
  slow.respond(await signRecord(key, { ...claim, sequence: 41n }));
  await pending;
  const last = decodeRecord((await node.metadata.get(publishedKey(key.id))) as Uint8Array);
  assert.deepEqual([Buffer.from(last.value).toString(), last.sequence], [`${empty}/a`, 42n]);
});

test("an aborted publish publishes nothing", async (t) => {
  const requested = Promise.withResolvers<void>();
  const { node, names, key } = await start(t, {
    async *search(_, { signal }) {
      const over = Promise.withResolvers<void>();
      signal?.addEventListener("abort", () => over.resolve());
      requested.resolve();
      await over.promise;
      yield* [];
    },
  });
  const leave = new AbortController();
  const publishing = names.publish(key, other, { signal: leave.signal });
  await requested.promise;
  leave.abort(new Error("called off"));
  await assert.rejects(publishing, { message: "called off" });
  assert.equal(await node.metadata.get(publishedKey(key.id)), undefined);
});

test("a search ends after the given count of records or the timeout", async (t) => {
  const counts: (number | undefined)[] = [];
  const { names } = await start(t, {
    async *search(_key, { count, signal }) {
      counts.push(count);
      await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
      yield* [];
    },
  });
  const nobody = "12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8";
  const signal = AbortSignal.timeout(60_000);
  await assert.rejects(names.find(nobody, { count: 3, timeout: 30, signal }), { message: "could not resolve name" });
  await assert.rejects(names.find(nobody, { timeout: 30, signal }), { message: "could not resolve name" });
  assert.deepEqual([counts, signal.aborted], [[3, 16], false]);
});
