import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import type { BlockService } from "#node/storage/blockstore/block_service.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { someBlocks } from "../bitswap/support.ts";
import { absent, block, FakeGateway, holding, never, provider, type Retrieval, retrieval } from "./support.ts";

async function getAll(service: BlockService, blocks: readonly Block[]): Promise<void> {
  const got = await Promise.all(blocks.map(({ cid }) => service.get(cid)));
  for (const [at, bytes] of got.entries()) assert.ok(Buffer.compare(bytes, (blocks[at] as Block).bytes) === 0);
}

/** Routing announces the first gateway at once, and the second one when `secondComes` is called. */
async function firstThen(
  t: Parameters<typeof retrieval>[0],
  first: FakeGateway,
  second: FakeGateway,
): Promise<Retrieval & { readonly secondComes: () => void }> {
  const made = await retrieval(t, { first, second });
  const records = await Promise.all(["first", "second"].map((host) => provider(`/dns/${host}/tcp/443/tls/http`)));
  const gate = Promise.withResolvers<void>();
  made.wants.providers = {
    async *findProviderPeers() {
      yield records[0] as (typeof records)[0];
      await gate.promise;
      yield records[1] as (typeof records)[0];
    },
  };
  return { ...made, secondComes: gate.resolve };
}

test("blocks come from a gateway that the routing names, and are stored and counted", async (t) => {
  const all = someBlocks(20, 1000);
  const gateway = new FakeGateway(holding(all));
  const { blocks, wants, sources } = await retrieval(t, { a: gateway });
  await getAll(blocks, all);
  for (const { cid } of all) assert.ok(await blocks.has(cid));
  assert.equal(gateway.probed, 1);
  assert.equal(wants.received.blocks, 20);
  assert.equal(wants.received.bytes, 20_000);
  assert.equal(sources.counts.block, 20);
  assert.equal(sources.counts.bytes, 20_000);
  assert.equal(new Set(gateway.requests).size, gateway.requests.length, "each block is asked for once");
});

test("blocks of a gateway that sends wrong bytes are dropped, and the gateway is banned", async (t) => {
  const [wanted, other, next] = someBlocks(3, 1000) as [Block, Block, Block];
  const honest = new FakeGateway(holding([wanted, next]));
  const liar = new FakeGateway(() => block(other));
  const { blocks, sources, secondComes } = await firstThen(t, liar, honest);
  const got = getAll(blocks, [wanted]);
  liar.respond = () => {
    secondComes();
    return block(other);
  };
  await got;
  await getAll(blocks, [next]);
  assert.ok(!(await blocks.has(other.cid)));
  assert.ok(liar.closed);
  assert.equal(liar.requests.length, 1);
  assert.equal(sources.counts.bytes, 2000);
  assert.deepEqual(await sources.at(await provider("/dns/first/tcp/443/tls/http")), []);
});

test("a gateway whose response violates the rules, for example by its size, is banned", async (t) => {
  const [wanted] = someBlocks(1, 1000) as [Block];
  const endless = new FakeGateway(never);
  const { blocks, secondComes } = await firstThen(t, endless, new FakeGateway(holding([wanted])));
  endless.respond = () => {
    secondComes();
    return { kind: "fault", reason: "it sends more than the bytes of a block" };
  };
  await getAll(blocks, [wanted]);
  assert.ok(endless.closed);
  assert.equal(endless.requests.length, 1);
});

test("a gateway that asks for a pause gets no requests until it is over, and the block comes from another", async (t) => {
  const [wanted, next] = someBlocks(2, 1000) as [Block, Block];
  const busy = new FakeGateway(never);
  const { blocks, sources, secondComes } = await firstThen(t, busy, new FakeGateway(holding([wanted])));
  busy.respond = () => {
    secondComes();
    return { kind: "later", after: 10_000 };
  };
  await getAll(blocks, [wanted]);
  const [source] = await sources.at(await provider("/dns/first/tcp/443/tls/http"));
  assert.equal(source?.state, "resting");
  assert.equal(busy.requests.length, 1);
  busy.respond = holding([next]);
  source?.tick(performance.now() + 9000);
  assert.equal(source?.state, "resting");
  const later = blocks.get(next.cid);
  source?.tick(performance.now() + 11_000);
  assert.equal(source?.state, "ready");
  await later;
  assert.deepEqual(busy.requests.slice(1), [next.cid.toString()]);
});

test("a block that a gateway does not send in time comes from another, and the request is aborted", async (t) => {
  const [wanted] = someBlocks(1, 1000) as [Block];
  const given = Promise.withResolvers<void>();
  const requests = Promise.withResolvers<void>();
  const slow = new FakeGateway((cid, signal) => {
    signal.addEventListener("abort", () => given.resolve());
    requests.resolve();
    return never(cid, signal);
  });
  const { blocks, sources, secondComes } = await firstThen(t, slow, new FakeGateway(holding([wanted])));
  const got = getAll(blocks, [wanted]);
  await requests.promise;
  secondComes();
  await got;
  await given.promise;
  assert.equal(sources.counts.withdrawn, 1);
});

test("blocks that a gateway lacks are requested from others, and a gateway without any hit is banned", async (t) => {
  const all = someBlocks(120, 100);
  const useless = new FakeGateway(() => absent);
  const full = new FakeGateway(holding(all));
  const { blocks, secondComes } = await firstThen(t, useless, full);
  const requests = new Promise<void>((resolve) => {
    useless.respond = () => {
      if (useless.requests.length === 100) resolve();
      return absent;
    };
  });
  const got = getAll(blocks, all);
  await requests;
  secondComes();
  await got;
  assert.ok(useless.closed);
  assert.equal(full.requests.length, 120);
});

test("requests in progress are limited to the number of workers, and a new gateway gets few of them", async (t) => {
  const all = someBlocks(60, 100);
  const waiting: (() => void)[] = [];
  const full = Promise.withResolvers<void>();
  const gateway = new FakeGateway(async (cid, signal) => {
    if (gateway.active === 4) full.resolve();
    if (gateway.requests.length <= 2) await new Promise<void>((resolve) => waiting.push(resolve));
    else await new Promise((resolve) => setImmediate(resolve));
    return holding(all)(cid, signal);
  });
  const { blocks } = await retrieval(t, { a: gateway }, { workers: 4 });
  const got = getAll(blocks, all);
  while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(gateway.active, 2);
  for (const go of waiting) go();
  await full.promise;
  await got;
  assert.equal(gateway.most, 4);
});

test("a server that is not a gateway, or fails repeatedly, is replaced by others", async (t) => {
  const [wanted] = someBlocks(1, 1000) as [Block];
  const none = new FakeGateway(never);
  none.probeResponse = { kind: "absent" };
  const { blocks, sources } = await retrieval(t, { none, good: new FakeGateway(holding([wanted])) });
  await getAll(blocks, [wanted]);
  assert.equal(none.requests.length, 0);
  await sources.at(await provider("/dns/none/tcp/443/tls/http"));
  assert.equal(none.probed, 1);
  assert.equal(sources.size, 1);
});

test("hosts that the operator does not allow, and addresses of networks of our own, are not even probed", async (t) => {
  const gateway = new FakeGateway(never);
  const hosts = { a: gateway, "10.0.0.7": gateway, "::1": gateway };
  const { sources } = await retrieval(t, hosts, {
    allows: (host) => host !== "a",
    mayDial: (_host, ip) => ip === "8.8.8.8",
  });
  for (const address of [
    "/dns/a/tcp/443/tls/http",
    "/ip4/10.0.0.7/tcp/80/http",
    "/ip6/::1/tcp/443/https",
    "/ip4/10.0.0.7/tcp/443/tls/sni/b/http",
    "/dns/b/tcp/443/wss",
  ])
    assert.deepEqual(await sources.at(await provider(address)), [], address);
  assert.equal(gateway.probed, 0);
});

test("the address that a stranger announces for a host of the allowlist is not trusted", async (t) => {
  const gateway = new FakeGateway(never);
  const mayDial = (host: string, ip: string) => host === "a.example" || ip === "8.8.8.8";
  const { sources } = await retrieval(t, { "a.example": gateway }, { mayDial });
  assert.deepEqual(await sources.at(await provider("/ip4/10.0.0.7/tcp/443/tls/sni/a.example/http")), []);
  assert.equal(gateway.probed, 0);
  gateway.probeResponse = { kind: "failed", reason: "another certificate" };
  assert.deepEqual(await sources.at(await provider("/ip4/8.8.8.8/tcp/443/tls/sni/a.example/http")), []);
  // The host is also not banned because a stranger announced a wrong address for it.
  gateway.probeResponse = { kind: "present" };
  assert.equal((await sources.at(await provider("/dns/a.example/tcp/443/tls/http"))).length, 1);
});

test("thousands of gateways that are announced at once are probed a few at a time", async (t) => {
  const gate = Promise.withResolvers<void>();
  const silent = new FakeGateway(never);
  silent.probe = async () => {
    silent.probed += 1;
    await gate.promise;
    return { kind: "failed", reason: "no answer" };
  };
  const names = Array.from({ length: 1000 }, (_, at) => `h${at}`);
  const { sources } = await retrieval(t, Object.fromEntries(names.map((name) => [name, silent])));
  const record = await provider("/dns/h0/tcp/443/tls/http");
  const tried = names.map((name) =>
    sources.at({ ...record, addresses: [parseMultiaddr(`/dns/${name}/tcp/443/https`)] }),
  );
  assert.equal(silent.probed, 32);
  gate.resolve();
  await Promise.all(tried);
});

test("the first address of a provider that responds is used", async (t) => {
  const dead = new FakeGateway(never);
  dead.probeResponse = { kind: "failed", reason: "refused" };
  const good = new FakeGateway(never);
  const { sources } = await retrieval(t, { dead, good, more: new FakeGateway(never) });
  const record = await provider(...["dead", "good", "more"].map((host) => `/dns4/${host}/tcp/443/tls/http`));
  const found = await sources.at(record);
  assert.deepEqual(
    found.map(({ name }) => name),
    ["https://good:443"],
  );
  assert.deepEqual(await sources.at(record), found);
  assert.equal(dead.probed, 1);
});

test("while one source sends blocks, others are searched for and share the remaining blocks", async (t) => {
  const all = someBlocks(2000, 100);
  const first = new FakeGateway(async (cid, signal) => {
    await pause(10);
    return holding(all)(cid, signal);
  });
  const second = new FakeGateway(first.respond);
  const { blocks, wants, sources, session } = await retrieval(t, { first, second });
  const [source] = await sources.at(await provider("/dns/first/tcp/443/tls/http"));
  assert.ok(source);
  session.addSource(source);
  const { providers } = wants;
  let searches = 0;
  wants.providers = {
    async *findProviderPeers(cid, signal) {
      searches += 1;
      yield* providers?.findProviderPeers(cid, signal) ?? [];
    },
  };
  // A reader behaves like this when it always waits for several blocks.
  const left = all.values();
  const read = async () => {
    for (const block of left) {
      await getAll(blocks, [block]);
      if (second.requests.length > 0) return;
    }
  };
  await Promise.all([read(), read(), read(), read()]);
  assert.equal(searches, 1);
  assert.ok(second.requests.length > 0);
});
