/** How the dashboard shows the store that several hosts share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeStore } from "#modules/mod_http_admin_node/types.ts";
import { FaultyHttp } from "#test/support/engines/faulty_http.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { startNode } from "./support.ts";

test("a shared store is shown with its engines, requests and last collection, and which of both is unreachable", {
  skip: noSharedStore,
}, async (t) => {
  const { settings } = await sharedStore();
  await using proxy = await FaultyHttp.start(settings.endpoint);
  const node_store = { ...settings, endpoint: proxy.endpoint, cache: 2 ** 24 };
  const host = await startNode({ config: { node_store } });
  t.after(() => host.stop());
  await host.node.open();
  await host.node.add("of a shared store");
  for await (const _removed of host.node.repo.gc());
  const store = await host.get<NodeStore>("/node/store");
  assert.equal(store.is_shared, true);
  const [objects, database] = store.engines ?? [];
  assert.deepEqual(objects, { kind: "objects", place: `${settings.s3}/` });
  assert.match(database?.place ?? "", /^127\.0\.0\.1:\d+$/);
  assert.equal(database?.problem, undefined);
  assert.equal(store.cache?.limit, 2 ** 24);
  assert.ok((store.cache?.size ?? 0) > 0);
  assert.ok(store.requests?.some(({ kind, count }) => kind === "put" && count > 0));
  assert.ok((store.commits?.count ?? 0) > 0);
  assert.equal(store.last_gc?.removed, 0);
  assert.doesNotMatch(JSON.stringify(store), /postgres@|password|secret/i);
  proxy.choose = (method) => (method === "PUT" ? { status: 403, code: "AccessDenied" } : undefined);
  await assert.rejects(host.node.add("refused"), { kind: "unavailable", message: /PUT s3:.* 403 AccessDenied/ });
  const refusing = (await host.get<NodeStore>("/node/store")).engines?.map(({ problem }) => problem);
  assert.match(`${refusing?.[0]}`, /takes no writes.*PUT s3:\/\/bucket\/.*403 AccessDenied.*Remedy: /);
  assert.equal(refusing?.[1], undefined);
  assert.equal(host.node.lowLevel.problem, refusing?.[0]);
  proxy.choose = () => "reset";
  await assert.rejects(host.node.add("not stored"));
  await eventually("the object store is reported as unreachable", async () => {
    const { engines = [] } = await host.get<NodeStore>("/node/store");
    return engines[0]?.problem !== undefined && engines[1]?.problem === undefined;
  });
  proxy.choose = () => undefined;
});

test("a node with its own store reports no shared store", async (t) => {
  const host = await startNode();
  t.after(() => host.stop());
  await host.node.open();
  assert.deepEqual(await host.get<NodeStore>("/node/store"), { is_shared: false });
});
