/**
 * One pinning service on several hosts of a shared store. Each request is handled by one host;
 * another host takes over when it is gone.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createNode, type Node, parseCid } from "modhost/node";
import { readFilter } from "#modules/mod_http_pinning/filter.ts";
import { Requests } from "#modules/mod_http_pinning/requests.ts";
import { Work } from "#modules/mod_http_pinning/work.ts";
import { eventually } from "#test/support/eventually.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";

interface Host {
  readonly node: Node;
  readonly requests: Requests;
  readonly work: Work;
  readonly session: number;
  /** CIDs that this host has started to fetch. */
  readonly begun: readonly string[];
  /** Messages that were logged as errors. */
  readonly errors: unknown[];
  /** Lets fetching continue. */
  readonly go: () => void;
  /** Requests a pin, as a client does. */
  pin(cid: string): Promise<string>;
  remove(id: string): Promise<void>;
  shown(): Promise<readonly unknown[]>;
}

/**
 * Starts a host that does not finish fetching until `go` is called. It checks for requests of other
 * hosts every `lookEvery` milliseconds.
 */
async function start(t: TestContext, store: MemorySharedStore, lookEvery: number): Promise<Host> {
  const node = await createNode({ repo: await emptyFolder(t), offline: true, stores: () => store.join() });
  const { lowLevel } = node;
  const { pins } = lowLevel;
  const begun: string[] = [];
  const errors: unknown[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (...parts: unknown[]) => void errors.push(parts) };
  const gate = Promise.withResolvers<void>();
  const slow = {
    isPinnedWithin: pins.isPinnedWithin.bind(pins),
    releaseWithin: pins.releaseWithin.bind(pins),
    async add(...[cid, mode, options]: Parameters<typeof pins.add>) {
      begun.push(String(cid));
      const left = new Promise<never>((_, reject) =>
        options?.signal?.addEventListener("abort", () => reject(options.signal?.reason)),
      );
      await Promise.race([gate.promise, left]);
      await pins.add(cid, mode, options);
    },
  };
  const { shared } = lowLevel;
  const slowly = { goOnline: async () => undefined, lowLevel: { shared, pins: slow, online: false, announce() {} } };
  const requests = new Requests(lowLevel.metadata);
  const work = new Work({
    node: slowly as unknown as Node,
    requests,
    log: log as never,
    parallel: 4,
    patience: 1_000_000,
    lookEvery,
  });
  t.after(async () => {
    await work.stop();
    await node.close();
  });
  work.start();
  const session = shared?.session as number;
  return {
    node,
    requests,
    work,
    session,
    begun,
    errors,
    go: gate.resolve,
    async pin(cid) {
      const [request] = await requests.add("anna", { cid }, undefined, session);
      assert.ok(request);
      work.take(request);
      return request.id;
    },
    async remove(id) {
      const left = await requests.leave("anna", id);
      assert.ok(left);
      work.take(left);
    },
    async shown() {
      const { results } = await requests.list("anna", readFilter("status=queued,pinning,pinned,failed"));
      return results.map(({ id, status, wish, details }) => ({ id, status, wish, details }));
    },
  };
}

const never = 2 ** 30;
const mode = ({ node }: Host, cid: string) => node.lowLevel.pins.mode(parseCid(cid));
async function content(host: Host, text: string): Promise<string> {
  return String((await host.node.add(text, { pin: false })).cid);
}
const isDone = (host: Host, id: string) =>
  eventually("it is pinned", async () => (await host.requests.get("anna", id))?.status === "pinned");

test("both hosts list the same requests; the host that took a request fetches it, and the other one takes over when that host is gone", async (t) => {
  const store = new MemorySharedStore();
  const one = await start(t, store, never);
  const other = await start(t, store, 2);
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  assert.deepEqual(await other.shown(), await one.shown());
  assert.deepEqual(await one.shown(), [{ id, status: "pinning", wish: { cid }, details: undefined }]);
  // Wait for two further checks of the other host.
  let looks = 0;
  const { shared } = other.node.lowLevel;
  const { sessions } = shared as { sessions: () => Promise<readonly number[]> };
  Object.assign(shared as object, {
    sessions: () => {
      looks += 1;
      return sessions.call(shared);
    },
  });
  await eventually("the other host has checked", async () => looks > 2);
  assert.deepEqual(other.begun, []);
  other.go();
  store.log.endSession(one.session);
  await isDone(other, id);
  assert.deepEqual([other.begun, await mode(other, cid)], [[cid], "recursive"]);
  // The first host finds that the request is done already.
  one.go();
  assert.deepEqual(await one.shown(), await other.shown());
});

test("a request that is removed at one host is ended by the host that fetches it", async (t) => {
  const store = new MemorySharedStore();
  const one = await start(t, store, 2);
  const other = await start(t, store, 2);
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  await other.remove(id);
  await eventually("the request is removed", async () => (await other.requests.at(`anna/${id}`)) === undefined);
  assert.deepEqual([await other.shown(), await mode(one, cid), other.begun], [[], undefined, []]);
});

test("content that was requested at both hosts stays pinned until both requests are removed, and a pin of the operator stays", async (t) => {
  const store = new MemorySharedStore();
  const one = await start(t, store, 2);
  const other = await start(t, store, 2);
  for (const host of [one, other]) host.go();
  const cid = await content(one, "content");
  const ids = await Promise.all([one.pin(cid), other.pin(cid)]);
  for (const id of ids) await isDone(one, id);
  const gone = (id: string) =>
    eventually("the request is removed", async () => (await one.requests.at(`anna/${id}`)) === undefined);
  await other.remove(ids[0] as string);
  await gone(ids[0] as string);
  assert.equal(await mode(other, cid), "recursive");
  await one.remove(ids[1] as string);
  await gone(ids[1] as string);
  assert.equal(await mode(other, cid), undefined);
  const ofOperator = await content(one, "of the operator");
  await one.node.pin.add(parseCid(ofOperator));
  const id = await other.pin(ofOperator);
  await isDone(one, id);
  await one.remove(id);
  await gone(id);
  assert.equal(await mode(other, ofOperator), "recursive");
});

test("if the module of a host is unloaded, another host continues its requests at once", async (t) => {
  const store = new MemorySharedStore();
  const one = await start(t, store, never);
  const other = await start(t, store, 2);
  other.go();
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  await one.work.stop();
  await isDone(other, id);
  assert.deepEqual(other.begun, [cid]);
});

test("a pin does not fail if the store is unavailable for a moment, and work continues afterwards", async (t) => {
  const store = new MemorySharedStore();
  const host = await start(t, store, 2);
  const cid = await content(host, "content");
  host.errors.length = 0;
  const id = await host.pin(cid);
  await eventually("it is being fetched", async () => host.begun.length === 1);
  store.log.available = false;
  host.go();
  await eventually("the error is logged", async () => host.errors.length > 0);
  store.log.available = true;
  await isDone(host, id);
  assert.equal(await mode(host, cid), "recursive");
});
