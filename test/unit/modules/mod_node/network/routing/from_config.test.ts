/** Tests the router that the configuration defines. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { configuredRouter, dhtModes } from "#node/network/routing/from_config.ts";
import { decodeConfig, valueAt } from "#node/storage/repo/schema.ts";
import { NodeLog } from "#node/util/log.ts";
import { cid, json, namedIn, outcome, peerRecord, peers, soon } from "./support.ts";

const methods = ["find-providers", "find-peers", "get-ipns", "put-ipns", "provide"];
const all = (RouterName: string) => Object.fromEntries(methods.map((name) => [name, { RouterName }]));

function opened(Routing: object, Ipns: object = {}) {
  const document = decodeConfig({ Routing, Ipns });
  const config = { value: ((path) => valueAt(document, path)) as Parameters<typeof dhtModes>[0]["value"] };
  const requests: string[] = [];
  const fetch = async (url: string) => {
    requests.push(new URL(url).host);
    return json({ Providers: [peerRecord(peers[0] ?? "")] });
  };
  const make = () => configuredRouter({ config, dhts: undefined, log: new NodeLog(), fetch });
  return { config, make, requests };
}

const methodsOf = (Routing: object, Ipns?: object) =>
  Object.keys(opened(Routing, Ipns).make())
    .filter((name) => name !== "canProvide")
    .sort();

test("the end of its URL decides which queries an HTTP router gets", () => {
  const delegated = (...DelegatedRouters: string[]) => methodsOf({ Type: "delegated", DelegatedRouters });
  assert.deepEqual(delegated("https://one.example"), ["findPeer", "findProviders", "search"]);
  assert.deepEqual(delegated("https://one.example/routing/v1/"), ["findPeer", "findProviders", "search"]);
  assert.deepEqual(delegated("https://one.example/routing/v1/providers"), ["findProviders"]);
  assert.deepEqual(delegated("https://one.example/routing/v1/peers", "http://two.example/routing/v1/ipns"), [
    "findPeer",
    "search",
  ]);
  const publisher = { DelegatedPublishers: ["https://one.example/routing/v1/ipns"] };
  assert.deepEqual(methodsOf({ Type: "delegated" }, publisher), ["put"]);
});

test("without a known HTTP router, auto only uses the DHT, and delegated is refused unless its routers are auto", () => {
  for (const Type of ["", "auto", "autoclient"]) {
    const { config, make } = opened({ Type, DelegatedRouters: ["auto"] }, { DelegatedPublishers: ["auto"] });
    assert.deepEqual(Object.keys(make()).sort(), ["canProvide"]);
    assert.notEqual(dhtModes(config), undefined);
  }
  assert.deepEqual(opened({ Type: "delegated", DelegatedRouters: ["auto"] }).make(), {});
  assert.throws(opened({ Type: "delegated" }).make, {
    message: /^no delegated routers or publishers configured for 'delegated' routing mode: add some to Routing/,
  });
});

test("the routing type decides the mode of each DHT", () => {
  const modesOf = (Type: string) => dhtModes(opened({ Type }).config);
  assert.deepEqual(modesOf("auto"), { wan: "auto", lan: "server" });
  assert.deepEqual(modesOf("autoclient"), { wan: "client", lan: "client" });
  for (const type of ["delegated", "none", "custom"]) assert.equal(modesOf(type), undefined);
  const dht = (Mode: string, PublicIPNetwork: boolean) => ({ Type: "dht", Parameters: { Mode, PublicIPNetwork } });
  const custom = (Routers: object) => dhtModes(opened({ Type: "custom", Routers }).config);
  assert.deepEqual(custom({ a: dht("server", true) }), { wan: "server", lan: "client" });
  assert.deepEqual(custom({ a: dht("auto", true), b: dht("server", false) }), { wan: "auto", lan: "server" });
  assert.throws(() => custom({ a: dht("fast", true) }), {
    message: 'router "a": invalid DHT mode: "fast" is not one of auto, client, server',
  });
  assert.throws(() => custom({ a: { Type: "dht", Parameters: {} } }), /^NodeError: router "a": invalid DHT mode: ""/);
});

test("a custom router is composed of the routers that it names, each for its methods", async () => {
  const http = (Endpoint: string) => ({ Type: "http", Parameters: { Endpoint } });
  const { make, requests } = opened({
    Type: "custom",
    Routers: {
      one: http("https://one.example"),
      two: http("https://two.example"),
      both: {
        Type: "parallel",
        Parameters: {
          Timeout: "1m",
          Routers: [
            { RouterName: "one", IgnoreErrors: true, Timeout: "10s" },
            { RouterName: "two", ExecuteAfter: "1ms" },
          ],
        },
      },
      first: { Type: "sequential", Parameters: { Routers: [{ RouterName: "one" }, { RouterName: "both" }] } },
    },
    Methods: { ...all("one"), "find-providers": { RouterName: "both" } },
  });
  const router = make();
  assert.deepEqual(
    Object.keys(router)
      .filter((name) => name !== "canProvide")
      .sort(),
    ["findPeer", "findProviders", "put", "search"],
  );
  const { events } = await outcome(router.findProviders?.(cid, soon()));
  assert.equal(namedIn(events).length, 2);
  assert.deepEqual(requests.sort(), ["one.example", "two.example"]);
});

describe("errors of the configuration name what is wrong", () => {
  const http = { Type: "http", Parameters: { Endpoint: "https://one.example" } };
  const cases: readonly [routing: object, reason: RegExp][] = [
    [{ Type: "odd" }, /^unrecognized routing option: odd$/],
    [
      { Type: "auto", DelegatedRouters: ["ftp://one.example"] },
      /^a router must be a URL such as https:.*"ftp:\/\/one.example"$/,
    ],
    [{ Type: "auto", DelegatedRouters: ["https://u:secret@one.example?a"] }, /not "https:\/\/one.example\?a"$/],
    [{ Type: "custom", Routers: { http } }, /^method name "provide" is missing from Routing.Methods config param$/],
    [
      { Type: "custom", Methods: { ...all("a"), odd: {} } },
      /^method name "odd" is not a supported method on Routing.Methods config param$/,
    ],
    [{ Type: "custom", Methods: all("a") }, /^config for router with name "a" not found$/],
    [{ Type: "custom", Methods: all("__proto__") }, /^config for router with name "__proto__" not found$/],
    [
      { Type: "custom", Methods: all("a"), Routers: { a: { Type: "reframe" } } },
      /^unknown router type "reframe" of the router "a": known types are http, /,
    ],
    [
      { Type: "custom", Methods: all("a"), Routers: { a: { Type: "http", Parameters: {} } } },
      /^router "a": configuration param 'Endpoint' is needed for http delegated routing types$/,
    ],
    [
      {
        Type: "custom",
        Methods: all("a"),
        Routers: {
          a: { Type: "parallel", Parameters: { Routers: [{ RouterName: "b" }] } },
          b: { Type: "sequential", Parameters: { Routers: [{ RouterName: "a" }] } },
        },
      },
      /^dependency loop creating router with name "a"$/,
    ],
  ];
  for (const [routing, reason] of cases) {
    test(String(reason), () => assert.throws(opened(routing).make, { message: reason }));
  }
});
