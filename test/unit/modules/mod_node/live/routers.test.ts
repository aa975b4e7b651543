/** Routers over HTTP are changed while the node runs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { recordKey } from "#node/network/ipns_record/keys.ts";
import type { ConfigPath } from "#node/storage/repo/schema.ts";
import { outcome, type RoutingNode, soon, startNode } from "../network/kad/support.ts";
import { cid } from "../network/routing/support.ts";

let node: RoutingNode;
/** Requested paths, without their queries. */
let requested: string[] = [];
const router = createServer(({ method, url = "" }, response) => {
  requested.push(`${method} ${url.replace(/\?.*/, "")}`);
  response.writeHead(method === "PUT" ? 200 : 404).end();
});
let url = "";
before(async () => {
  await once(router.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${(router.address() as AddressInfo).port}`;
  node = await startNode();
});
after(async () => {
  await node?.[Symbol.asyncDispose]();
  router.close();
  router.closeAllConnections();
});

/**
 * Sets values, and asserts that all of them apply at once. Returns the paths that the node then
 * requests from the router.
 */
async function asksWith(values: Partial<Record<ConfigPath, unknown>>): Promise<readonly string[]> {
  const { config } = node.node.repo;
  for (const [path, value] of Object.entries(values)) await config.set(path, () => value);
  assert.deepEqual(config.waiting, []);
  requested = [];
  const key = recordKey(node.id);
  for (const events of [
    node.routing.findProviders(cid, { count: 1, signal: soon() }),
    node.routing.get(key, soon()),
    node.routing.put(key, Buffer.from("x"), soon()),
  ]) {
    await outcome(events);
  }
  return requested.map((path) => path.replace(/[^/]*$/, ""));
}

test("routers are requested from the moment they are in the list, and no longer than that", async () => {
  const find = "GET /routing/v1/providers/";
  const get = "GET /routing/v1/ipns/";
  const put = "PUT /routing/v1/ipns/";
  assert.deepEqual(await asksWith({ "Routing.Type": "auto" }), []);
  assert.deepEqual(await asksWith({ "Routing.DelegatedRouters": [url] }), [find, get]);
  assert.deepEqual(await asksWith({ "Ipns.DelegatedPublishers": [url] }), [find, get, put]);
  assert.deepEqual(await asksWith({ "Routing.Type": "dht" }), []);
  assert.deepEqual(await asksWith({ "Routing.Type": "autoclient", "Routing.DelegatedRouters": null }), [put]);
  const methods = ["find-providers", "find-peers", "get-ipns", "put-ipns", "provide"];
  const all = (RouterName: string) => Object.fromEntries(methods.map((name) => [name, { RouterName }]));
  const routers = {
    local: { Type: "dht", Parameters: { Mode: "server", PublicIPNetwork: false } },
    http: { Type: "http", Parameters: { Endpoint: url } },
  };
  assert.deepEqual(
    await asksWith({ "Routing.Routers": routers, "Routing.Methods": all("local"), "Routing.Type": "custom" }),
    [],
  );
  const mixed = { ...all("local"), "get-ipns": { RouterName: "http" } };
  assert.deepEqual(await asksWith({ "Routing.Methods": mixed }), [get]);
});

test("a list that is wrong, and one that needs the DHT to end, wait, and the former goes on", async () => {
  const { config } = node.node.repo;
  await config.set("Routing.Type", () => "auto");
  await config.set("Routing.DelegatedRouters", () => [url]);
  await config.set("Routing.DelegatedRouters", () => ["nowhere"]);
  assert.match(config.waiting[0]?.reason ?? "", /^a router must be a URL such as https:\/\/HOST/);
  assert.ok(node.routing.router.findProviders !== undefined);
  await config.set("Routing.DelegatedRouters", () => [url]);
  await config.set("Routing.Type", () => "delegated");
  assert.deepEqual(config.waiting, [
    { key: "Routing.Type", reason: "a change to or from `none` takes effect at the next start" },
  ]);
});
