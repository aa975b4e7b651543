import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Ledger } from "#node/network/bitswap/ledger.ts";
import { type PeerWant, PeerWantlist } from "#node/network/bitswap/peer_wantlist.ts";
import { blockOf } from "./support.ts";

const order = (name: string, priority: number): PeerWant => {
  const { cid } = blockOf(Buffer.from(name));
  return { key: name, cid, priority, wantBlock: true, sendDontHave: false, size: undefined, state: "waiting" };
};

suite("wants of a peer", () => {
  test("wants of a peer are taken by priority, then in the order of arrival, up to one message", () => {
    const orders = new PeerWantlist();
    for (const [name, priority] of [
      ["a", 1],
      ["b", 5],
      ["c", 5],
      ["d", 9],
    ] as const) {
      const each = order(name, priority);
      orders.add(each);
      orders.markReady(each, 100);
    }
    assert.equal(orders.pendingBytes, 400);
    assert.deepEqual(
      orders.takeReady(250).map(({ key }) => key),
      ["d", "b"],
    );
    assert.deepEqual(
      orders.takeReady(1).map(({ key }) => key),
      ["c"],
    );
    assert.equal(orders.pendingBytes, 100);
    assert.deepEqual(
      orders.takeReady(1).map(({ key }) => key),
      ["a"],
    );
    assert.equal(orders.hasReady, false);
    assert.equal(orders.size, 4);
  });

  test("wants of a peer are not taken after their removal", () => {
    const orders = new PeerWantlist();
    const one = order("one", 1);
    const two = order("two", 1);
    for (const each of [one, two]) {
      orders.add(each);
      orders.markReady(each, 10);
    }
    orders.remove(one);
    assert.equal(orders.pendingBytes, 10);
    assert.deepEqual(orders.takeReady(100), [two]);
    orders.remove(two);
    assert.equal(orders.size, 0);
  });
});

test("a ledger gives the debt ratio", () => {
  const ledger = new Ledger();
  ledger.send(300);
  ledger.receive(99);
  assert.deepEqual([ledger.sent, ledger.received, ledger.exchanged, ledger.value], [300, 99, 2, 3]);
});
