/**
 * One pinning service on several hosts of a shared store: each request is worked on by one of them,
 * as long as that is there.
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
  /** CIDs that it has begun to fetch. */
  readonly begun: readonly string[];
  /** What was logged as an error. */
  readonly errors: unknown[];
  /** Lets fetching go on. */
  readonly go: () => void;
  /** Asks for a pin, as a client does. */
  pin(cid: string): Promise<string>;
  remove(id: string): Promise<void>;
  shown(): Promise<readonly unknown[]>;
}

/**
 * A host whose fetching waits for `go`; it looks for what others have left every `lookEvery`
 * milliseconds.
 */
async function start(t: TestContext, place: MemorySharedStore, lookEvery: number): Promise<Host> {
  const node = await createNode({ repo: await emptyFolder(t), offline: true, stores: () => place.join() });
  const { lowLevel } = node;
  const { pins } = lowLevel;
  const begun: string[] = [];
  const errors: unknown[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (...told: unknown[]) => void errors.push(told) };
  const gate = Promise.withResolvers<void>();
  const slow = {
    isKeptWithin: pins.isKeptWithin.bind(pins),
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

test("both list and answer the same; a request is fetched by the host that took it, and by another when that is gone", async (t) => {
  const place = new MemorySharedStore();
  const one = await start(t, place, never);
  const other = await start(t, place, 2);
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  assert.deepEqual(await other.shown(), await one.shown());
  assert.deepEqual(await one.shown(), [{ id, status: "pinning", wish: { cid }, details: undefined }]);
  // Two looks of the other host later.
  let looks = 0;
  const { shared } = other.node.lowLevel;
  const { sessions } = shared as { sessions: () => Promise<readonly number[]> };
  Object.assign(shared as object, {
    sessions: () => {
      looks += 1;
      return sessions.call(shared);
    },
  });
  await eventually("it has looked", async () => looks > 2);
  assert.deepEqual(other.begun, []);
  other.go();
  place.log.endSession(one.session);
  await isDone(other, id);
  assert.deepEqual([other.begun, await mode(other, cid)], [[cid], "recursive"]);
  // Whoever was away finds out that it is done.
  one.go();
  assert.deepEqual(await one.shown(), await other.shown());
});

test("a request that is removed by way of one host is ended by the one that fetches it", async (t) => {
  const place = new MemorySharedStore();
  const one = await start(t, place, 2);
  const other = await start(t, place, 2);
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  await other.remove(id);
  await eventually("it is gone", async () => (await other.requests.at(`anna/${id}`)) === undefined);
  assert.deepEqual([await other.shown(), await mode(one, cid), other.begun], [[], undefined, []]);
});

test("a pin that was asked for at both is there until both are removed; a pin of the operator stays", async (t) => {
  const place = new MemorySharedStore();
  const one = await start(t, place, 2);
  const other = await start(t, place, 2);
  for (const host of [one, other]) host.go();
  const cid = await content(one, "content");
  const ids = await Promise.all([one.pin(cid), other.pin(cid)]);
  for (const id of ids) await isDone(one, id);
  const gone = (id: string) =>
    eventually("it is gone", async () => (await one.requests.at(`anna/${id}`)) === undefined);
  await other.remove(ids[0] as string);
  await gone(ids[0] as string);
  assert.equal(await mode(other, cid), "recursive");
  await one.remove(ids[1] as string);
  await gone(ids[1] as string);
  assert.equal(await mode(other, cid), undefined);
  const kept = await content(one, "of the operator");
  await one.node.pin.add(parseCid(kept));
  const id = await other.pin(kept);
  await isDone(one, id);
  await one.remove(id);
  await gone(id);
  assert.equal(await mode(other, kept), "recursive");
});

test("what a host had begun with when its module is unloaded is taken up by another at once", async (t) => {
  const place = new MemorySharedStore();
  const one = await start(t, place, never);
  const other = await start(t, place, 2);
  other.go();
  const cid = await content(one, "content");
  const id = await one.pin(cid);
  await eventually("it is being fetched", async () => one.begun.length === 1);
  await one.work.stop();
  await isDone(other, id);
  assert.deepEqual(other.begun, [cid]);
});

test("a store that is away for a moment fails no pin: the work goes on with it afterwards", async (t) => {
  const place = new MemorySharedStore();
  const host = await start(t, place, 2);
  const cid = await content(host, "content");
  host.errors.length = 0;
  const id = await host.pin(cid);
  await eventually("it is being fetched", async () => host.begun.length === 1);
  place.log.available = false;
  host.go();
  await eventually("the fault is told", async () => host.errors.length > 0);
  place.log.available = true;
  await isDone(host, id);
  assert.equal(await mode(host, cid), "recursive");
});
