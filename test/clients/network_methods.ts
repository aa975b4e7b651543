/**
 * Methods that need the network: each use involves the other node, or what the network can do with
 * only two nodes.
 */
import assert from "node:assert/strict";
import { CID } from "multiformats/cid";
import { untilRight } from "#test/support/network/report.ts";
import type { Rpc } from "#test/support/network/rpc.ts";
import { cidOf, elsewhere, gives, holds, type MethodLine, malformed, type Plain, type Use } from "./use.ts";

const empty = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
/** No node has this block. */
const nowhere = CID.parse("QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXE1");
const topic = "driven";
const service = "driven";

const added = (on: Rpc, content: string): Promise<string> => on.add({ file: [Buffer.from(content)] });

/** Returns the record of the other node's own name from the routing system. */
async function recordOf(other: Rpc): Promise<Uint8Array> {
  const events = await other.all<{ Type: number; Extra: string }>("dht/get", { arg: `/ipns/${other.id}` });
  return Buffer.from(events.find(({ Type }) => Type === 5)?.Extra ?? "", "base64");
}

/** Repeats a call until its result matches. */
async function becomes(ask: () => Promise<Plain>, wanted: RegExp): Promise<void> {
  holds(await untilRight(ask, (result) => wanted.test(JSON.stringify(result) ?? "")), wanted);
}

/** Matches the event in which a method of a routing system reports that it has found a peer. */
const eventOf = (name: string, { id }: Rpc) => new RegExp(`"name":"${name}".*${id}`);

const pinned = ({ results }: Use): Plain => ({ status: "pinned", cid: String(results.get("remote")), name: "far" });

/** Methods of the routing system, under its name in the library. */
const searchesOf = (group: "dht" | "routing"): Readonly<Record<string, MethodLine>> => ({
  [`${group}.findPeer`]: async ({ call, other }) =>
    holds(await call(`${group}.findPeer`, other.id), eventOf("FINAL_PEER", other)),
  [`${group}.provide`]: async ({ call }) => {
    const reportedEvent = /"name":"(PEER_RESPONSE|FINAL_PEER|SENDING_QUERY)"/;
    holds(await call(`${group}.provide`, empty), group === "dht" ? reportedEvent : []);
    holds(await call(`${group}.provide`, empty, { verbose: true }), reportedEvent);
  },
  [`${group}.findProvs`]: async ({ call, other }) => {
    const cid = await added(other, "provided by the other");
    await other.all("dht/provide", { arg: cid });
    // An announcement has no response, so it may still be running.
    await becomes(() => call(`${group}.findProvs`, CID.parse(cid), { numProviders: 1 }), eventOf("PROVIDER", other));
  },
  [`${group}.get`]: async ({ call, other }) => {
    await other.one("name/publish", { arg: `/ipfs/${empty}` });
    holds(await call(`${group}.get`, `/ipns/${other.id}`), new RegExp(`"name":"VALUE".*/ipfs/${empty}`));
  },
  [`${group}.put`]: async ({ call, other }) =>
    holds(await call(`${group}.put`, `/ipns/${other.id}`, await recordOf(other)), /"name":"VALUE"/),
});

export const networkMethods: Readonly<Record<string, MethodLine>> = {
  "bootstrap.list": gives("bootstrap.list", [], { Peers: [] }),
  "bootstrap.add": async ({ call, other: { address } }) =>
    holds(await call("bootstrap.add", address), { Peers: [address] }),
  "bootstrap.rm": async ({ call, other: { address } }) => {
    holds(await call("bootstrap.list"), { Peers: [address] });
    holds(await call("bootstrap.rm", address), { Peers: [address] });
  },
  "bootstrap.reset": gives("bootstrap.reset", [], /"Peers":\["\/(dnsaddr|ip4)\//),
  "bootstrap.clear": gives("bootstrap.clear", [], /"Peers":\["\/(dnsaddr|ip4)\//),

  "swarm.connect": async ({ call, other }) =>
    holds(await call("swarm.connect", other.address), [`connect ${other.id} success`]),
  "swarm.peers": async ({ call, other }) =>
    holds(await call("swarm.peers", { direction: true }), [{ peer: other.id, direction: "outbound" }]),
  "swarm.addrs": async ({ call, other }) => holds(await call("swarm.addrs"), new RegExp(`"id":"${other.id}"`)),
  "swarm.localAddrs": gives("swarm.localAddrs", [], /"\/ip4\/127\.0\.0\.1\/tcp\/\d+"/),
  ping: async ({ call, other }) =>
    holds(await call("ping", other.id, { count: 1 }), [
      { success: true, text: `PING ${other.id}.` },
      { success: true, text: "" },
      { success: true },
    ]),

  "bitswap.wantlist": async ({ call, first }) => {
    const leaving = new AbortController();
    const waiting = first("cat", nowhere, { signal: leaving.signal }).catch(() => undefined);
    await becomes(() => call("bitswap.wantlist"), new RegExp(`"${nowhere}"`));
    leaving.abort();
    await waiting;
  },
  "bitswap.wantlistForPeer": async ({ call, other }) => {
    const leaving = new AbortController();
    const query = { arg: String(nowhere) };
    const waiting = other.post("block/get", query, { signal: leaving.signal }).catch(() => undefined);
    await becomes(() => call("bitswap.wantlistForPeer", other.id), new RegExp(`"${nowhere}"`));
    leaving.abort();
    await waiting;
  },
  "bitswap.unwant": elsewhere,
  "bitswap.stat": async ({ call, other }) => {
    holds(await call("cat", CID.parse(await added(other, "of the other"))), ["of the other"]);
    holds(await call("bitswap.stat"), { blocksReceived: 1, dataReceived: 20, peers: [other.id] });
  },
  "stats.bitswap": async ({ call, other }) =>
    holds(await call("stats.bitswap"), { blocksReceived: 1, peers: [other.id] }),
  "stats.bw": gives("stats.bw", [], /"totalIn":[1-9]\d+,"totalOut":[1-9]\d+/),

  "dht.query": async ({ call, other }) => holds(await call("dht.query", other.id), /"name":"PEER_RESPONSE"/),
  ...searchesOf("dht"),
  ...searchesOf("routing"),
  "provide.stat": gives("provide.stat", [], /"Sweep":\{"closed":false/),

  // This name needs no resolver.
  dns: async ({ call }) => assert.rejects(call("dns", "localhost", { timeout: 5000 }), /could not resolve name/),
  mount: {
    why: malformed,
    overHttp: ({ call }) => assert.rejects(call("mount"), /argument "domain-name" is required/),
  },

  "name.publish": async ({ call, results }) => {
    const published = await call("name.publish", `/ipfs/${empty}`);
    holds(published, { value: `/ipfs/${empty}` });
    results.set("name", (published as { name: string }).name);
  },
  "name.resolve": async ({ call, results, other }) => {
    const name = String(results.get("name"));
    holds(await call("name.resolve", `/ipns/${name}`), [`/ipfs/${empty}`]);
    const query = { arg: name, nocache: "true" };
    assert.deepEqual(await other.one("name/resolve", query), { Path: `/ipfs/${empty}` });
  },
  "name.pubsub.state": gives("name.pubsub.state", [], { enabled: true }),
  "name.pubsub.subs": async ({ call, results }) =>
    holds(await call("name.pubsub.subs"), new RegExp(`/ipns/${results.get("name")}`)),
  "name.pubsub.cancel": async ({ call, results }) =>
    holds(await call("name.pubsub.cancel", results.get("name")), { canceled: true }),

  "pubsub.subscribe": async ({ call, results, other }) => {
    const { promise, resolve } = Promise.withResolvers<{ data: Uint8Array; topic: string; from: unknown }>();
    await call("pubsub.subscribe", topic, resolve);
    const listening = untilRight(
      () => other.one<{ Strings: string[] }>("pubsub/peers", { arg: topic }),
      ({ Strings }) => Strings.length > 0,
    );
    results.set("peer", (await listening).Strings[0]);
    await other.all("pubsub/pub", { arg: [topic, "said by the other \u{1f344}"] });
    const { data, from, topic: under } = await promise;
    assert.equal(Buffer.from(data).toString(), "said by the other \u{1f344}");
    assert.deepEqual([String(from), under], [other.id, topic]);
  },
  "pubsub.ls": gives("pubsub.ls", [], new RegExp(`"${topic}"`)),
  "pubsub.peers": async ({ call, other }) => {
    const leaving = new AbortController();
    await other.post("pubsub/sub", { arg: topic }, { signal: leaving.signal });
    await becomes(() => call("pubsub.peers", topic), new RegExp(other.id));
    leaving.abort();
  },
  "pubsub.publish": async ({ call, other, results }) => {
    const leaving = new AbortController();
    const heard = await other.post("pubsub/sub", { arg: topic }, { signal: leaving.signal });
    await becomes(() => call("pubsub.peers", topic), new RegExp(other.id));
    await call("pubsub.publish", topic, Buffer.from([0, 255, 10]));
    for await (const piece of heard.body ?? []) {
      const { data, from } = JSON.parse(Buffer.from(piece).toString());
      assert.equal(data, "AP8K");
      assert.notEqual(from, "");
      break;
    }
    leaving.abort();
    assert.ok(results.get("peer"));
  },
  "pubsub.unsubscribe": async ({ call }) => {
    await call("pubsub.unsubscribe", topic);
    await becomes(async () => !String(await call("pubsub.ls")).includes(topic), /true/);
  },

  "pin.remote.service.add": async ({ call, pinning: { endpoint, token } }) =>
    holds(await call("pin.remote.service.add", service, { endpoint: new URL(endpoint), key: token }), undefined),
  "pin.remote.service.ls": async ({ call, pinning: { endpoint } }) =>
    holds(await call("pin.remote.service.ls", { stat: true }), [
      { service, endpoint, stat: { status: "valid", pinCount: { queued: 0, pinning: 0, pinned: 0, failed: 0 } } },
    ]),
  "pin.remote.add": async (use) => {
    const { call, results } = use;
    const { cid } = (await call("add", "pinned far away", { pin: false })) as { cid: string };
    results.set("remote", cid);
    holds(await call("pin.remote.add", cidOf(cid), { service, name: "far" }), pinned(use));
  },
  "pin.remote.ls": async (use) => {
    holds(await use.call("pin.remote.ls", { service, status: ["pinned"] }), [pinned(use)]);
    const { Keys } = await use.other.one<{ Keys: object }>("pin/ls", { type: "recursive" });
    assert.ok(String(use.results.get("remote")) in Keys);
  },
  "pin.remote.rm": async ({ call }) => {
    await call("pin.remote.rm", { service, name: "far" });
    holds(await call("pin.remote.ls", { service }), []);
  },
  "pin.remote.rmAll": async ({ call }) => {
    for (const content of ["one", "two"]) {
      const { cid } = (await call("add", content)) as { cid: string };
      await call("pin.remote.add", cidOf(cid), { service, name: "both" });
    }
    await call("pin.remote.rmAll", { service, name: "both" });
    holds(await call("pin.remote.ls", { service }), []);
  },
  "pin.remote.service.rm": async ({ call }) => {
    await call("pin.remote.service.rm", service);
    holds(await call("pin.remote.service.ls"), []);
  },

  "swarm.disconnect": async ({ call, other }) => {
    holds(await call("swarm.disconnect", `/p2p/${other.id}`), [`disconnect ${other.id} success`]);
    holds(await call("swarm.peers"), []);
  },
};
