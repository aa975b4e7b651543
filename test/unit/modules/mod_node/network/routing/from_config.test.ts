/** The router that the configuration asks for. */
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
  const asked: string[] = [];
  const fetch = async (url: string) => {
    asked.push(new URL(url).host);
    return json({ Providers: [peerRecord(peers[0] ?? "")] });
  };
  const make = () => configuredRouter({ config, dhts: undefined, log: new NodeLog(), fetch });
  return { config, make, asked };
}

const methodsOf = (Routing: object, Ipns?: object) =>
  Object.keys(opened(Routing, Ipns).make())
    .filter((name) => name !== "canProvide")
    .sort();

test("what a router over HTTP is asked goes by the end of its URL", () => {
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

test("without routers over HTTP, and with the word auto before it is known what it stands for, auto is the DHT alone; delegated is refused unless that word is there", () => {
  for (const Type of ["", "auto", "autoclient"]) {
    const { config, make } = opened({ Type, DelegatedRouters: ["auto"] }, { DelegatedPublishers: ["auto"] });
    assert.deepEqual(Object.keys(make()).sort(), ["canProvide"]);
    assert.notEqual(dhtModes(config), undefined);
  }
  assert.deepEqual(opened({ Type: "delegated", DelegatedRouters: ["auto"] }).make(), {});
  assert.throws(opened({ Type: "delegated" }).make, {
    message: /^no delegated routers or publishers configured for 'delegated' routing mode: name some in Routing/,
  });
});

test("modes of the DHT", () => {
  const modesOf = (Type: string) => dhtModes(opened({ Type }).config);
  assert.deepEqual(modesOf("auto"), { wan: "auto", lan: "server" });
  assert.deepEqual(modesOf("autoclient"), { wan: "client", lan: "client" });
  for (const type of ["delegated", "none", "custom"]) assert.equal(modesOf(type), undefined);
  const dht = (Mode: string, PublicIPNetwork: boolean) => ({ Type: "dht", Parameters: { Mode, PublicIPNetwork } });
  const custom = (Routers: object) => dhtModes(opened({ Type: "custom", Routers }).config);
  assert.deepEqual(custom({ a: dht("server", true) }), { wan: "server", lan: "client" });
  assert.deepEqual(custom({ a: dht("auto", true), b: dht("server", false) }), { wan: "auto", lan: "server" });
  assert.throws(() => custom({ a: dht("fast", true) }), { message: 'router "a": invalid DHT mode "fast"' });
});

test("a custom router is made of those that it names, each by its methods", async () => {
  const http = (Endpoint: string) => ({ Type: "http", Parameters: { Endpoint } });
  const { make, asked } = opened({
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
  assert.deepEqual(asked.sort(), ["one.example", "two.example"]);
});

describe("what is wrong is named", () => {
  const http = { Type: "http", Parameters: { Endpoint: "https://one.example" } };
  const cases: readonly [routing: object, reason: RegExp][] = [
    [{ Type: "odd" }, /^unrecognized routing option: odd$/],
    [
      { Type: "auto", DelegatedRouters: ["ftp://one.example"] },
      /^a router is an URL such as https:.*"ftp:\/\/one.example"$/,
    ],
    [{ Type: "auto", DelegatedRouters: ["https://u:secret@one.example?a"] }, /not "https:\/\/one.example\?a"$/],
    [
      { Type: "custom", Routers: { http } },
      /^method name "find-providers" is missing from Routing.Methods config param$/,
    ],
    [{ Type: "custom", Methods: { ...all("a"), odd: {} } }, /^Routing.Methods: there is no method "odd"$/],
    [{ Type: "custom", Methods: all("a") }, /^config for router with name "a" not found$/],
    [{ Type: "custom", Methods: all("__proto__") }, /^config for router with name "__proto__" not found$/],
    [
      { Type: "custom", Methods: all("a"), Routers: { a: { Type: "reframe" } } },
      /^unknown router type "reframe" of the router "a": there are http, /,
    ],
    [{ Type: "custom", Methods: all("a"), Routers: { a: { Type: "http" } } }, /^a router is an URL such as/],
    [
      {
        Type: "custom",
        Methods: all("a"),
        Routers: {
          a: { Type: "parallel", Parameters: { Routers: [{ RouterName: "b" }] } },
          b: { Type: "sequential", Parameters: { Routers: [{ RouterName: "a" }] } },
        },
      },
      /^dependency cycle creating router with name "a"$/,
    ],
  ];
  for (const [routing, reason] of cases) {
    test(String(reason), () => assert.throws(opened(routing).make, { message: reason }));
  }
});
