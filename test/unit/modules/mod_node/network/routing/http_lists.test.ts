/** Reads providers and peers from an HTTP router, whatever its responses are. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_RECORDS, MAX_RESPONSE_SIZE } from "#node/network/routing/http/lists.ts";
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

test("a request asks for streamed records, with filters for the transports and protocols that the node has", async () => {
  const { router, requests } = fakeRouter(
    () => json({ Providers: [peerRecord(one)] }),
    "https://router.example/routing/v1/",
  );
  assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [named(one)]);
  const [{ url, init } = assert.fail()] = requests;
  assert.equal(url.origin + url.pathname, `https://router.example/routing/v1/providers/${cid}`);
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    "filter-addrs": "!webrtc-direct,!webtransport,quic-v1,tcp,unknown",
    "filter-protocols": "transport-bitswap,transport-ipfs-gateway-http,unknown",
  });
  assert.equal(init.headers.accept, "application/x-ndjson,application/json");
  assert.match(init.headers["user-agent"] ?? "", /^modhost\//);
  assert.equal(init.redirect, "error");
});

test("gateways are neither requested nor returned without retrieval over HTTP", async () => {
  const gateway = peerRecord(two, { Protocols: ["transport-ipfs-gateway-http"] });
  const response = () => json({ Providers: [gateway, peerRecord(one)] });
  const { router, requests } = fakeRouter(response, "https://router.example", false);
  assert.deepEqual(namedIn((await outcome(router.findProviders(cid, soon()))).events), [named(one)]);
  assert.equal(requests[0]?.url.searchParams.get("filter-protocols"), "transport-bitswap,unknown");
});

test("a peer is requested by its CID, and only a record of that peer with addresses counts", async () => {
  const strangers = [peerRecord(two), peerRecord(one, { Addrs: [] })];
  const { router, requests } = fakeRouter(() => json({ Peers: [...strangers, peerRecord(one)] }));
  assert.deepEqual(namedIn((await outcome(router.findPeer(one, soon()))).events), [named(one)]);
  assert.equal(requests[0]?.url.pathname, `/routing/v1/peers/${one.toCID()}`);
  assert.equal(requests[0]?.url.searchParams.has("filter-protocols"), false);
  const without = fakeRouter(() => json({ Peers: strangers })).router;
  assert.deepEqual(await outcome(without.findPeer(one, soon())), { events: [] });
});

test("lines are read as they arrive, and no further than needed", async () => {
  const waiting = Promise.withResolvers<string>();
  async function* endless() {
    yield `${JSON.stringify(peerRecord(one))}\n{"Schema":"peer","ID"`;
    yield `:"${two}","Addrs":["${address}"]}\n`;
    yield await waiting.promise;
    assert.fail("read to the end");
  }
  const { response, state } = streamed(endless());
  const found: unknown[] = [];
  for await (const event of fakeRouter(() => response).router.findProviders(cid, soon())) {
    found.push(...namedIn([event]));
    if (found.length === 2) break;
  }
  assert.deepEqual(found, [named(one), named(two, [])]);
  waiting.resolve("\n");
  while (!state.isOver) await new Promise(setImmediate);
});

describe("accepted records", () => {
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

test("invalid and unwanted records are omitted, and the others count", async () => {
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
  const stream = fakeRouter(() => streamed([lines.join("\n")]).response).router;
  assert.deepEqual(namedIn((await outcome(stream.findProviders(cid, soon()))).events), [named(two)]);
});

test("the number of addresses and protocols read from one record is limited", async () => {
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
  test("an endless stream is cut off after the maximum number of records", async () => {
    function* records() {
      for (;;) yield `${JSON.stringify(peerRecord(one, { Addrs: [] }))}\n`;
    }
    const { response, state } = streamed(records());
    const { events, failure } = await outcome(fakeRouter(() => response).router.findProviders(cid, soon()));
    assert.equal(failure, undefined);
    assert.equal(events.length, MAX_RECORDS);
    assert.ok(state.isOver && state.read <= MAX_RECORDS + 2, `${state.read}`);
  });

  test("an endless stream is cut off after the maximum number of bytes, also within one line", async () => {
    const piece = "x".repeat(64 * 1024);
    function* line() {
      yield `${JSON.stringify(peerRecord(one))}\n`;
      for (;;) yield piece;
    }
    const { response, state } = streamed(line());
    const { events, failure } = await outcome(fakeRouter(() => response).router.findProviders(cid, soon()));
    assert.equal(failure, undefined);
    assert.deepEqual(namedIn(events), [named(one)]);
    assert.ok(state.isOver && state.read <= MAX_RESPONSE_SIZE / piece.length + 3, `${state.read}`);
  });

  test("an endless document fails", async () => {
    function* document() {
      yield '{"Providers":[';
      for (;;) yield " ".repeat(64 * 1024);
    }
    const { response, state } = streamed(document(), "application/json");
    const { failure } = await outcome(fakeRouter(() => response).router.findProviders(cid, soon()));
    assert.equal(failure, "router https://router.example: the response has more than 1048576 bytes");
    assert.equal(state.isOver, true);
  });
});

describe("responses without a record are not failures", () => {
  const responses: readonly [what: string, respond: () => Response][] = [
    ["status 404", () => new Response("not found", { status: 404 })],
    ["an empty list", () => json({ Providers: [] })],
    ["null", () => json({ Providers: null })],
    ["no list", () => json({ Providers: { length: 2 } })],
    ["an empty stream", () => streamed([]).response],
  ];
  for (const [what, respond] of responses) {
    test(what, async () => {
      assert.deepEqual(await outcome(fakeRouter(respond).router.findProviders(cid, soon())), { events: [] });
    });
  }
});

describe("a failure names the router, first in an event and then in the error", () => {
  const responses: readonly [what: string, respond: () => Response, reason: string][] = [
    ["another status", () => new Response("no", { status: 500 }), "status 500"],
    [
      "no JSON",
      () => new Response("<html>", { headers: { "content-type": "application/json" } }),
      "the response is not a JSON document",
    ],
    [
      "another type",
      () => new Response("<html>", { headers: { "content-type": "text/html; charset=utf-8" } }),
      'the response has the type "text/html" instead of application/x-ndjson,application/json',
    ],
  ];
  for (const [what, respond, reason] of responses) {
    test(what, async () => {
      const { events, failure } = await outcome(fakeRouter(respond).router.findProviders(cid, soon()));
      assert.equal(failure, `router https://router.example: ${reason}`);
      assert.deepEqual(errorsIn(events), [failure]);
    });
  }

  test("a failed connection, without the password in the URL", async () => {
    const { router, requests } = fakeRouter(() => {
      throw Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error(), { code: "ECONNRESET" }) });
    }, "https://user:secret@router.example");
    const { failure } = await outcome(router.findProviders(cid, soon()));
    assert.equal(failure, "router https://router.example: EOF");
    assert.equal(requests[0]?.url.href.includes("secret"), false);
    assert.equal(requests[0]?.init.headers.authorization, `Basic ${Buffer.from("user:secret").toString("base64")}`);
  });
});

test("a router that asks for a pause gets no requests for that time", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  let respond = () => json({}, { status: 429, headers: { "retry-after": "7" } });
  const { router, requests } = fakeRouter(() => respond());
  const ask = async () => (await outcome(router.findProviders(cid, soon()))).failure;
  assert.equal(await ask(), "router https://router.example: status 429");
  assert.equal(await ask(), "router https://router.example: it has requested a pause, which lasts for another 7s");
  assert.equal(requests.length, 1);
  now += 7000;
  respond = () => json({}, { status: 503, headers: { "retry-after": "1000000" } });
  assert.match((await ask()) ?? "", /status 503$/);
  now += 60_000;
  respond = () => json({ Providers: [] });
  assert.equal(await ask(), undefined);
  assert.equal(requests.length, 3);
});

test("the number of concurrent requests to one router is limited, and waiting requests can be aborted", async () => {
  const gate = Promise.withResolvers<void>();
  const { router, requests } = fakeRouter(async () => {
    await gate.promise;
    return json({ Providers: [peerRecord(one)] });
  });
  const leaving = new AbortController();
  const all = Array.from({ length: 40 }, () => outcome(router.findProviders(cid, soon())));
  const left = outcome(router.findProviders(cid, { signal: leaving.signal }));
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  assert.equal(requests.length, 32);
  leaving.abort(new Error("left"));
  assert.deepEqual(await left, { events: [], failure: "left" });
  gate.resolve();
  for (const { events } of await Promise.all(all)) assert.equal(events.length, 1);
  assert.equal(requests.length, 40);
});

test("requests of other nodes are not passed on", async () => {
  const { router, requests } = fakeRouter(() => assert.fail("asked"));
  for (const ask of [
    router.findProviders(cid, { ...soon(), delegated: false }),
    router.findPeer(one, { ...soon(), delegated: false }),
    router.search(Buffer.from("/ipns/"), { ...soon(), delegated: false }),
  ]) {
    assert.deepEqual(await outcome(ask), { events: [] });
  }
  assert.deepEqual(requests, []);
});
