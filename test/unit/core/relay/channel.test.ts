/** Calls over a port, messages of other code on it, and the end of the other side. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { Channel, type Handlers, type MessageEndpoint } from "#core/relay/channel.ts";
import { deserializeError, serializeError } from "#core/relay/errors.ts";

/** Two connected ends that copy each message. */
function pair(handlers: Handlers = {}) {
  let receive: (message: unknown) => void = () => undefined;
  const sent: unknown[] = [];
  const strays: unknown[] = [];
  const port: MessageEndpoint = {
    postMessage: (message) => void sent.push(structuredClone(message)),
    on: (_event, listener) => {
      receive = listener as typeof receive;
    },
  };
  const channel = new Channel(port, handlers, (message) => strays.push(message));
  return { channel, sent, strays, receive: (message: unknown) => receive(message) };
}

const cyclic: Record<string, unknown> = {};
cyclic.self = cyclic;

/** Messages that libraries post to a parent thread or process, and forged messages of a channel. */
const foreign: readonly unknown[] = [
  ...["ready", "", 1, 0, -1, Number.NaN, 10n, true, false, null, undefined],
  ...[[], ["call"], {}, cyclic, new Map([["call", "work"]]), new Error("call"), new Date(0), Buffer.alloc(3)],
  ...[new SharedArrayBuffer(8), new Float64Array(4), { cmd: "NODE_HANDLE_ACK" }, { type: "ready", pid: 7 }],
  ...[{ call: "work" }, { call: "work", values: "abc" }, { call: "work", values: { length: 2 } }],
  { call: "work", values: Object.assign([], { length: 2 ** 32 - 1 }) },
  ...[
    { call: null, values: [] },
    { call: ["work"], values: [] },
    { call: "work", id: "1", values: [] },
  ],
  ...[
    { call: "work", id: Number.NaN, values: [] },
    { call: "work", id: {}, values: [] },
  ],
  ...[{ reply: "1", value: 1 }, { reply: Number.NaN, value: 1 }, { reply: 1.5, value: 1 }, { reply: null }],
  JSON.parse('{"__proto__":{"call":"work","values":[]}}'),
];

describe("a channel", () => {
  test("ignores messages of other code and keeps working", async () => {
    const done: unknown[] = [];
    const { channel, receive, sent, strays } = pair({ work: (value: unknown) => void done.push(value) });
    for (const message of foreign) receive(message);
    assert.equal(strays.length, foreign.length);
    assert.deepEqual([done, sent], [[], []]);
    receive({ call: "work", id: undefined, values: ["on"] });
    const result = channel.call("ask");
    receive({ reply: 1, value: "yes" });
    assert.equal(await result, "yes");
    assert.deepEqual(done, ["on"]);
  });

  test("ignores a reply to an unknown call, and a second reply to the same call", async () => {
    const { channel, receive } = pair();
    for (const reply of [0, -1, 2, 77, Number.MAX_SAFE_INTEGER]) receive({ reply, value: "forged" });
    const result = channel.call("ask");
    receive({ reply: 1, value: "first" });
    receive({ reply: 1, error: { name: "Error", message: "second" } });
    assert.equal(await result, "first");
  });

  test("calls only its own handlers, and no inherited functions", async () => {
    const { receive, sent } = pair({});
    const names = ["constructor", "toString", "__proto__", "hasOwnProperty", "nothing"];
    for (const [id, call] of names.entries()) receive({ call, id, values: ["return process"] });
    await new Promise(setImmediate);
    assert.equal(sent.length, names.length);
    for (const message of sent as { error: { message: string } }[])
      assert.match(message.error.message, /^This end has no function /);
  });

  test("reads an error of any form as an error", async () => {
    const odd: readonly unknown[] = [
      ...[null, "text", 7, {}, [], { name: {}, message: [], stack: 3, code: {} }],
      { name: "ModhostError", message: "m", code: "toString" },
      { name: "ModhostError", message: 1, code: "MODULE_CYCLE", stack: {} },
      { name: "Error", message: "m", code: JSON.parse('{"__proto__":1}') },
    ];
    for (const error of odd) {
      const { channel, receive } = pair();
      const result = channel.call("ask");
      receive({ reply: 1, error });
      const got = await result.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      assert.ok(got instanceof Error, JSON.stringify(error));
      const { name, message, stack } = got;
      for (const text of [name, message, stack ?? ""]) assert.equal(typeof text, "string");
    }
    assert.equal(deserializeError(serializeError(new TypeError("wrong"))).message, "wrong");
  });

  test("replies to a call whose handler throws any value", async () => {
    const thrown: readonly unknown[] = [
      ...[undefined, null, 7, Symbol("x"), Object.create(null), () => undefined],
      { toString: () => assert.fail() },
      Object.assign(new Error("e"), { message: { inner: () => undefined }, name: 7, code: {} }),
      Object.defineProperty(new Error("e"), "message", { get: () => assert.fail() }),
      new Proxy(new Error("e"), { getPrototypeOf: () => assert.fail() }),
    ];
    const work = (at: number) => {
      throw thrown[at];
    };
    const { receive, sent } = pair({ work, odd: () => () => undefined });
    for (const at of thrown.keys()) receive({ call: "work", id: at, values: [at] });
    receive({ call: "odd", id: 100, values: [] });
    await new Promise(setImmediate);
    assert.equal(sent.length, thrown.length + 1);
    for (const message of sent) assert.ok("error" in (message as object));
  });

  test("delivers calls and results over a real port", async () => {
    const { port1, port2 } = new MessageChannel();
    const one = new Channel(port1 as unknown as MessageEndpoint, { add: (a: number, b: number) => a + b });
    const other = new Channel(port2 as unknown as MessageEndpoint, {});
    for (const message of foreign) port2.postMessage(message);
    assert.equal(await other.call("add", 2, 3), 5);
    await assert.rejects(one.call("add", 2, 3), /This end has no function add/);
    port1.close();
    await once(port2, "close");
  });

  test("rejects pending and later calls once it has ended, and sends no more results", async () => {
    const { channel, receive, sent } = pair({ slow: () => new Promise((resolve) => setImmediate(resolve)) });
    const waiting = [channel.call("a"), channel.call("b"), channel.call("c")];
    receive({ call: "slow", id: 1, values: [] });
    channel.end(new Error("gone"));
    channel.end(new Error("gone again"));
    for (const call of [...waiting, channel.call("d")]) await assert.rejects(call, { message: "gone" });
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    assert.equal(sent.length, 3);
    assert.equal(channel.ended?.message, "gone");
  });
});
