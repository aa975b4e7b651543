/** Providers and peers from a router over HTTP, whatever it answers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_ANSWER_SIZE, MAX_RECORDS } from "#node/network/routing/http/lists.ts";
import {
  cid,
  errorsIn,
  fakeRouter,
  json,
  namedIn,
  otherPeer,
  outcome,
  peerRecord,
  peers,
  soon,
  streamed,
} from "./support.ts";

const [one, two] = peers as [(typeof peers)[0], (typeof peers)[0]];
const address = "/ip4/192.0.2.1/tcp/4001";
const named = (id: unknown, protocols = ["transport-bitswap"]) => [String(id), [address], protocols];

test("a router is asked for streamed records over the transports and ways to get blocks that the node has", async () => {
  const { router, asked } = fakeRouter(
    () => json({ Providers: [peerRecord(one)] }),
    "https://router.example/routing/v1/",
  );
  assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [named(one)]);
  const [{ url, init } = assert.fail()] = asked;
  assert.equal(url.origin + url.pathname, `https://router.example/routing/v1/providers/${cid}`);
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    "filter-addrs": "!webrtc-direct,!webtransport,quic-v1,tcp,unknown",
    "filter-protocols": "transport-bitswap,transport-ipfs-gateway-http,unknown",
  });
  assert.equal(init.headers.accept, "application/x-ndjson,application/json");
  assert.match(init.headers["user-agent"] ?? "", /^modhost\//);
  assert.equal(init.redirect, "error");
});

test("without retrieval over HTTP gateways are not asked for, and left out", async () => {
  const gateway = peerRecord(two, { Protocols: ["transport-ipfs-gateway-http"] });
  const answer = () => json({ Providers: [gateway, peerRecord(one)] });
  const { router, asked } = fakeRouter(answer, "https://router.example", false);
  assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [named(one)]);
  assert.equal(asked[0]?.url.searchParams.get("filter-protocols"), "transport-bitswap,unknown");
});

test("a peer is asked for by its CID; of the answer only a record of that peer with addresses counts", async () => {
  const strangers = [peerRecord(two), peerRecord(one, { Addrs: [] })];
  const { router, asked } = fakeRouter(() => json({ Peers: [...strangers, peerRecord(one)] }));
  assert.deepEqual(namedIn((await outcome(router.findPeer(one, soon()))).events), [named(one)]);
  assert.equal(asked[0]?.url.pathname, `/routing/v1/peers/${one.toCID()}`);
  assert.equal(asked[0]?.url.searchParams.has("filter-protocols"), false);
  const without = fakeRouter(() => json({ Peers: strangers })).router;
  assert.deepEqual(await outcome(without.findPeer(one, soon())), { events: [] });
});

test("lines are read as they come, and no further than somebody wants them", async () => {
  const waiting = Promise.withResolvers<string>();
  async function* endless() {
    yield `${JSON.stringify(peerRecord(one))}\n{"Schema":"peer","ID"`;
    yield `:"${two}","Addrs":["${address}"]}\n`;
    yield await waiting.promise;
    assert.fail("read to the end");
  }
  const { answer, state } = streamed(endless());
  const found: unknown[] = [];
  for await (const event of fakeRouter(() => answer).router.findProviders(cid, soon())) {
    found.push(...namedIn([event]));
    if (found.length === 2) break;
  }
  assert.deepEqual(found, [named(one), named(two, [])]);
  waiting.resolve("\n");
  while (!state.isOver) await new Promise(setImmediate);
});

describe("records are taken", () => {
  const taken: readonly [what: string, record: unknown, protocols?: readonly string[]][] = [
    ["of the schema of today", peerRecord(one)],
    ["with fields that nobody knows", peerRecord(one, { "transport-ipfs-gateway-http": "sA==", Extra: { a: [1] } })],
    [
      "of gateways over HTTP",
      peerRecord(one, { Protocols: ["transport-ipfs-gateway-http"] }),
      ["transport-ipfs-gateway-http"],
    ],
    ["with protocols in other letters", peerRecord(one, { Protocols: ["Transport-BITSWAP"] })],
    [
      "of the former schema bitswap",
      peerRecord(one, { Schema: "bitswap", Protocol: "transport-bitswap", Protocols: undefined }),
    ],
    ["without protocols", peerRecord(one, { Protocols: undefined }), []],
    ["by the CID of the peer", peerRecord(one.toCID().toString())],
    ["with the peer at the end of its address", peerRecord(one, { Addrs: [`${address}/p2p/${one}`] })],
    [
      "without the addresses that cannot be read, are those of another, or over transports that the node has not",
      peerRecord(one, {
        Addrs: [
          1,
          "tcp://x",
          "/odd/1",
          `${address}/p2p/${two}`,
          "/ip4/192.0.2.1/udp/1/webrtc-direct",
          `/${"a".repeat(9000)}`,
          address,
        ],
      }),
    ],
  ];
  for (const [what, record, protocols] of taken) {
    test(what, async () => {
      const { router } = fakeRouter(() => json({ Providers: [record] }));
      assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [
        named(one, [...(protocols ?? ["transport-bitswap"])]),
      ]);
    });
  }
});

test("what is no record, or is not wanted, is left out, and the others count", async () => {
  const odd = [
    null,
    1,
    "peer",
    [],
    {},
    peerRecord("nobody"),
    peerRecord(String(cid)),
    peerRecord(otherPeer, { ID: 7 }),
    peerRecord(one, { Schema: "unheard-of" }),
    peerRecord(one, { Protocols: ["transport-graphsync-filecoinv1"] }),
    peerRecord(one, { Addrs: ["/ip4/192.0.2.1/udp/1/quic-v1/webtransport"] }),
  ];
  const { router } = fakeRouter(() => json({ Providers: [...odd, peerRecord(two)] }));
  assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [named(two)]);
  const lines = [
    ...odd.map((record) => JSON.stringify(record)),
    "{",
    "",
    '{"Schema":',
    JSON.stringify(peerRecord(two)),
  ];
  const stream = fakeRouter(() => streamed([lines.join("\n")]).answer).router;
  assert.deepEqual(namedIn((await outcome(stream.findProviders(cid, soon()))).events), [named(two)]);
});

test("of one record so many addresses and protocols are read, and no more", async () => {
  const many = peerRecord(one, {
    Addrs: Array.from({ length: 1000 }, (_, at) => `/ip4/192.0.2.1/tcp/${at + 1}`),
    Protocols: ["transport-bitswap", "x".repeat(1000), ...Array.from({ length: 1000 }, (_, at) => `p${at}`)],
  });
  const { router } = fakeRouter(() => json({ Providers: [many] }));
  const [[, addresses, protocols] = assert.fail()] = namedIn((await outcome(router.findProviders(cid, soon()))).events);
  assert.equal(addresses?.length, 50);
  assert.equal(protocols?.length, 16);
});

describe("a router that never ends", () => {
  test("is cut off after so many records", async () => {
    function* records() {
      for (;;) yield `${JSON.stringify(peerRecord(one, { Addrs: [] }))}\n`;
    }
    const { answer, state } = streamed(records());
    const { events, failure } = await outcome(fakeRouter(() => answer).router.findProviders(cid, soon()));
    assert.equal(failure, undefined);
    assert.equal(events.length, MAX_RECORDS);
    assert.ok(state.isOver && state.read <= MAX_RECORDS + 2, `${state.read}`);
  });

  test("is cut off after so many bytes, in one line as well", async () => {
    const piece = "x".repeat(64 * 1024);
    function* line() {
      yield `${JSON.stringify(peerRecord(one))}\n`;
      for (;;) yield piece;
    }
    const { answer, state } = streamed(line());
    const { events, failure } = await outcome(fakeRouter(() => answer).router.findProviders(cid, soon()));
    assert.equal(failure, undefined);
    assert.deepEqual(namedIn(events), [named(one)]);
    assert.ok(state.isOver && state.read <= MAX_ANSWER_SIZE / piece.length + 3, `${state.read}`);
  });

  test("has failed with its document", async () => {
    function* document() {
      yield '{"Providers":[';
      for (;;) yield " ".repeat(64 * 1024);
    }
    const { answer, state } = streamed(document(), "application/json");
    const { failure } = await outcome(fakeRouter(() => answer).router.findProviders(cid, soon()));
    assert.equal(failure, "router https://router.example: the answer has more than 1048576 bytes");
    assert.equal(state.isOver, true);
  });
});

describe("nothing is found, without a failure", () => {
  const answers: readonly [what: string, answer: () => Response][] = [
    ["status 404", () => new Response("not found", { status: 404 })],
    ["an empty list", () => json({ Providers: [] })],
    ["null", () => json({ Providers: null })],
    ["no list", () => json({ Providers: { length: 2 } })],
    ["an empty stream", () => streamed([]).answer],
  ];
  for (const [what, answer] of answers) {
    test(what, async () => {
      assert.deepEqual(await outcome(fakeRouter(answer).router.findProviders(cid, soon())), { events: [] });
    });
  }
});

describe("a failure names the router, as an event and then by what is thrown", () => {
  const answers: readonly [what: string, answer: () => Response, reason: string][] = [
    ["another status", () => new Response("no", { status: 500 }), "status 500"],
    [
      "no JSON",
      () => new Response("<html>", { headers: { "content-type": "application/json" } }),
      "the answer is no document of JSON",
    ],
    [
      "another type",
      () => new Response("<html>", { headers: { "content-type": "text/html; charset=utf-8" } }),
      'the answer is of the type "text/html", and not application/x-ndjson,application/json',
    ],
  ];
  for (const [what, answer, reason] of answers) {
    test(what, async () => {
      const { events, failure } = await outcome(fakeRouter(answer).router.findProviders(cid, soon()));
      assert.equal(failure, `router https://router.example: ${reason}`);
      assert.deepEqual(errorsIn(events), [failure]);
    });
  }

  test("no connection, without the password of its URL", async () => {
    const { router, asked } = fakeRouter(() => {
      throw Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error(), { code: "ECONNRESET" }) });
    }, "https://user:secret@router.example");
    const { failure } = await outcome(router.findProviders(cid, soon()));
    assert.equal(failure, "router https://router.example: EOF");
    assert.equal(asked[0]?.url.href.includes("secret"), false);
    assert.equal(asked[0]?.init.headers.authorization, `Basic ${Buffer.from("user:secret").toString("base64")}`);
  });
});

test("a router that wants rest is left alone as long as it says", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  let answer = () => json({}, { status: 429, headers: { "retry-after": "7" } });
  const { router, asked } = fakeRouter(() => answer());
  const ask = async () => (await outcome(router.findProviders(cid, soon()))).failure;
  assert.equal(await ask(), "router https://router.example: status 429");
  assert.equal(await ask(), "router https://router.example: it asked to be left alone for another 7s");
  assert.equal(asked.length, 1);
  now += 7000;
  answer = () => json({}, { status: 503, headers: { "retry-after": "1000000" } });
  assert.match((await ask()) ?? "", /status 503$/);
  now += 60_000;
  answer = () => json({ Providers: [] });
  assert.equal(await ask(), undefined);
  assert.equal(asked.length, 3);
});

test("so many questions are asked of one router at a time, and who waits may leave", async () => {
  const gate = Promise.withResolvers<void>();
  const { router, asked } = fakeRouter(async () => {
    await gate.promise;
    return json({ Providers: [peerRecord(one)] });
  });
  const leaving = new AbortController();
  const all = Array.from({ length: 40 }, () => outcome(router.findProviders(cid, soon())));
  const left = outcome(router.findProviders(cid, { signal: leaving.signal }));
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  assert.equal(asked.length, 32);
  leaving.abort(new Error("left"));
  assert.deepEqual(await left, { events: [], failure: "left" });
  gate.resolve();
  for (const { events } of await Promise.all(all)) assert.equal(events.length, 1);
  assert.equal(asked.length, 40);
});

test("questions of others are not asked", async () => {
  const { router, asked } = fakeRouter(() => assert.fail("asked"));
  for (const ask of [
    router.findProviders(cid, { ...soon(), delegated: false }),
    router.findPeer(one, { ...soon(), delegated: false }),
    router.search(Buffer.from("/ipns/"), { ...soon(), delegated: false }),
  ]) {
    assert.deepEqual(await outcome(ask), { events: [] });
  }
  assert.deepEqual(asked, []);
});
