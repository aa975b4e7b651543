/** Tests routers that combine several others. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventTypes, type RoutingEvent, type RoutingEvents } from "#node/network/kad/events.ts";
import { parallel, sequential } from "#node/network/routing/compose.ts";
import { only, type Router, type RouterQuery } from "#node/network/routing/router.ts";
import { NodeError } from "#node/util/errors.ts";
import { cid, namedIn, outcome, peers, soon } from "./support.ts";

const [one, two, three] = peers as [(typeof peers)[0], (typeof peers)[0], (typeof peers)[0]];
const key = Buffer.from("key");
const record = { key, value: Buffer.from("value") };

const provider = (id: typeof one): RoutingEvent => ({ type: eventTypes.provider, responses: [{ id, multiaddrs: [] }] });
const peer = (id: typeof one): RoutingEvent => ({ type: eventTypes.finalPeer, responses: [{ id, multiaddrs: [] }] });
const value = (text: string): RoutingEvent => ({ type: eventTypes.value, value: Buffer.from(text) });

/**
 * A router that yields these events for every method, and fails afterwards if requested; `calls`
 * counts its queries.
 */
function saying(events: readonly RoutingEvent[], failure?: string) {
  const state = { calls: 0, isOver: false };
  async function* ask(): RoutingEvents {
    state.calls += 1;
    yield* events;
    state.isOver = true;
    if (failure !== undefined) throw new NodeError("ROUTER_FAILED", failure);
  }
  return { findProviders: ask, findPeer: ask, search: ask, put: ask, provide: ask, canProvide: () => true, state };
}

/** A router that responds only when the query is aborted. */
function silent() {
  const state = { wasLeft: false };
  const ask: RouterQuery<unknown> = async function* (_, { signal }) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    state.wasLeft = true;
    signal.throwIfAborted();
    yield peer(three);
  };
  return { findProviders: ask, findPeer: ask, search: ask, put: ask, provide: ask, state };
}

const idsIn = (events: readonly RoutingEvent[]) => namedIn(events).map(([id]) => id);

describe("parallel routers", () => {
  test("all routers are queried for providers, and failures do not count next to a result", async () => {
    for (const ignoreErrors of [false, true]) {
      const router = parallel([
        { router: saying([provider(one)]) },
        { router: saying([provider(two)], "broken"), ignoreErrors },
        { router: saying([], "also broken"), ignoreErrors },
      ]);
      const { events, failure } = await outcome(router.findProviders?.(cid, soon()));
      assert.deepEqual(idsIn(events).sort(), [one, two].map(String).sort());
      assert.equal(failure, undefined);
    }
  });

  test("the first router that knows a peer suffices, and the others are aborted", async () => {
    const slow = silent();
    const router = parallel([{ router: slow }, { router: saying([], "broken") }, { router: saying([peer(one)]) }]);
    assert.deepEqual(idsIn((await outcome(router.findPeer?.(one, soon()))).events), [one.toString()]);
    while (!slow.state.wasLeft) await new Promise(setImmediate);
  });

  test("records come from all routers", async () => {
    const router = parallel([{ router: saying([value("a")]) }, { router: saying([value("b")]) }]);
    const { events } = await outcome(router.search?.(key, soon()));
    assert.deepEqual(events.map((event) => String(event.value)).sort(), ["a", "b"]);
  });

  test("a router that still searches after another has found records has two seconds left", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const slow = silent();
    const requests = outcome(parallel([{ router: slow }, { router: saying([value("a")]) }]).search?.(key, soon()));
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    t.mock.timers.tick(1999);
    assert.equal(slow.state.wasLeft, false);
    t.mock.timers.tick(1);
    const { events, failure } = await requests;
    assert.deepEqual([events.map((event) => String(event.value)), failure], [["a"], undefined]);
    assert.equal(slow.state.wasLeft, true);
  });

  test("a failure that counts is thrown without a result, and an ignored one only if all have failed", async () => {
    const failing = (first: boolean, second: boolean, last = saying([])) =>
      parallel([
        { router: saying([], "first"), ignoreErrors: first },
        { router: saying([], "second"), ignoreErrors: second },
        { router: last, ignoreErrors: true },
      ]);
    const failureOf = async (router: Router) => (await outcome(router.findPeer?.(one, soon()))).failure;
    assert.equal(await failureOf(failing(true, false)), "second");
    assert.equal(await failureOf(failing(true, true)), undefined);
    assert.equal(await failureOf(failing(true, true, saying([], "third"))), "first");
  });

  test("storing fails if a router that counts fails, or if no router accepts", async () => {
    const failureOf = async (...members: Parameters<typeof parallel>[0]) =>
      (await outcome(parallel(members).put?.(record, soon()))).failure;
    const broken = saying([], "broken");
    assert.equal(await failureOf({ router: saying([]) }, { router: broken, ignoreErrors: true }), undefined);
    assert.equal(await failureOf({ router: saying([]) }, { router: broken }), "broken");
    assert.equal(await failureOf({ router: broken, ignoreErrors: true }), "broken");
  });

  test("a router that exceeds its timeout has failed, and a delayed one is queried", async () => {
    const late = parallel([{ router: silent(), timeoutMs: 20 }]);
    assert.equal((await outcome(late.findPeer?.(one, soon()))).failure, "no response within 20ms");
    const whole = parallel([{ router: silent() }], 20);
    assert.equal((await outcome(whole.findPeer?.(one, soon()))).failure, "no response within 20ms");
    const delayed = parallel([
      { router: silent(), timeoutMs: 20, ignoreErrors: true },
      { router: saying([peer(one)]), delayMs: 10 },
    ]);
    assert.deepEqual(idsIn((await outcome(delayed.findPeer?.(one, soon()))).events), [one.toString()]);
  });

  test("an abort reaches all routers, and its reason is thrown", async () => {
    const leaving = new AbortController();
    const slow = silent();
    const requests = outcome(
      parallel([{ router: slow }, { router: saying([]) }]).findPeer?.(one, { signal: leaving.signal }),
    );
    await new Promise(setImmediate);
    leaving.abort(new Error("left"));
    assert.deepEqual(await requests, { events: [], failure: "left" });
    assert.equal(slow.state.wasLeft, true);
  });
});

describe("sequential routers", () => {
  test("the next router is queried only if the previous one does not know the peer", async () => {
    const last = saying([peer(two)]);
    const router = sequential([
      { router: saying([]) },
      { router: saying([], "broken"), ignoreErrors: true },
      { router: saying([peer(one)]) },
      { router: last },
    ]);
    assert.deepEqual(idsIn((await outcome(router.findPeer?.(one, soon()))).events), [one.toString()]);
    assert.equal(last.state.calls, 0);
  });

  test("the first router with a record suffices, while providers come from all", async () => {
    const last = saying([value("b"), provider(two)]);
    const router = sequential([{ router: saying([value("a"), provider(one)]) }, { router: last }]);
    const { events } = await outcome(router.search?.(key, soon()));
    assert.deepEqual(
      events.flatMap((event) => (event.value === undefined ? [] : [String(event.value)])),
      ["a"],
    );
    assert.equal(last.state.calls, 0);
    assert.deepEqual(idsIn((await outcome(router.findProviders?.(cid, soon()))).events), [one, two].map(String));
  });

  test("a failure that counts ends the query", async () => {
    const last = saying([peer(one)]);
    const router = sequential([{ router: saying([], "broken") }, { router: last }]);
    assert.equal((await outcome(router.findPeer?.(one, soon()))).failure, "broken");
    assert.equal((await outcome(router.provide?.(cid, soon()))).failure, "broken");
    assert.equal(last.state.calls, 0);
  });
});

test("the combined router has every method that one of them has", () => {
  const finds = only(saying([]), ["findProviders"]);
  assert.deepEqual(Object.keys(parallel([{ router: finds }, { router: {} }])), ["findProviders", "canProvide"]);
  assert.equal(parallel([{ router: finds }]).canProvide?.(), false);
  assert.equal(sequential([{ router: finds }, { router: saying([]) }]).canProvide?.(), true);
});
