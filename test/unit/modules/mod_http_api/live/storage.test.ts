import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { NodeModule } from "modhost/node";
import { createTestHost } from "#core/testing/index.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host?.stop());

const set = async (key: string, value: unknown) => {
  const { status, text } = await host.call(
    `config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`,
  );
  assert.equal(status, 200, text);
};
const lowLevel = () => host.host.exports<NodeModule>("node").lowLevel;

test("repo/stat and the watermark follow the current Datastore.StorageMax and Datastore.StorageGCWatermark", async () => {
  await set("Datastore.StorageMax", "1KB");
  assert.equal((await host.value<{ StorageMax: number }>("repo/stat")).StorageMax, 1000);
  await host.call("add", { a: "x".repeat(2000) });
  assert.equal(await lowLevel().isNearlyFull(), true);
  await set("Datastore.StorageGCWatermark", 1_000_000_000);
  assert.equal(await lowLevel().isNearlyFull(), false);
  await set("Datastore.StorageGCWatermark", 90);
  await set("Datastore.StorageMax", "10GB");
});

test("collections follow the current Datastore.GCPeriod, and an invalid value keeps the previous one", async () => {
  await using timed = await createTestHost({
    clock: "manual",
    modules: [],
    config: { modules_enabled: ["http", "http_api"], node_offline: true, node_gc: true },
  });
  const call = async (path: string, content?: string) => {
    const body = new FormData();
    if (content !== undefined) body.append("file", new File([content], "a"));
    return timed.inject({
      method: "POST",
      path: `/api/v0/${path}`,
      ...(content === undefined ? {} : { body }),
    });
  };
  const loose = async (text: string) => JSON.parse((await call("add?pin=false", text)).body).Hash as string;
  const isHere = async (cid: string) => (await call(`block/stat?arg=${cid}`)).status === 200;
  await call("config?arg=Datastore.StorageMax&arg=1KB");
  await call("config?arg=Datastore.GCPeriod&arg=1m");
  const first = await loose("first");
  await timed.clock.advance(60);
  assert.equal(await isHere(first), false);
  const { headers } = await call("config?arg=Datastore.GCPeriod&arg=often");
  assert.match(String(headers["x-modhost-config-waits"]), /^Datastore\.GCPeriod;reason=".*often/);
  const second = await loose("second");
  await timed.clock.advance(60);
  assert.equal(await isHere(second), false);
  await call("config?arg=Datastore.GCPeriod&arg=0");
  const third = await loose("third");
  await timed.clock.advance(7200);
  assert.equal(await isHere(third), true);
});

test("Datastore.HashOnRead makes reads verify blocks", async () => {
  await set("Datastore.HashOnRead", true);
  assert.equal(lowLevel().blocks.hashOnRead, true);
  await set("Datastore.HashOnRead", false);
  assert.equal(lowLevel().blocks.hashOnRead, false);
});

test("Experimental.ShardingEnabled decides whether directories are sharded", async () => {
  const made = async () => {
    const { lines } = await host.call("add?wrap-with-directory=true&pin=false", { a: "x" });
    return (lines.at(-1) as { Hash: string }).Hash;
  };
  const plain = await made();
  await set("Experimental.ShardingEnabled", true);
  assert.notEqual(await made(), plain);
  await set("Experimental.ShardingEnabled", false);
  assert.equal(await made(), plain);
});

test("names are looked up at the servers of DNS.Resolvers", async (t) => {
  const requested: string[] = [];
  await set("DNS.Resolvers", { "live.test.": "https://dns.example/dns-query" });
  t.mock.method(globalThis, "fetch", async (url: string | URL) => {
    requested.push(String(url));
    throw new Error("no such server");
  });
  await assert.rejects(lowLevel().names.resolveDnslink("live.test", { depth: 1 }));
  assert.match(requested[0] ?? "", /^https:\/\/dns\.example\/dns-query/);
  t.mock.restoreAll();
  await set("DNS.Resolvers", {});
});

test("a service that is written into Pinning.RemoteServices is listed at once", async () => {
  const file = join(host.folder, "data", "repo", "config");
  const document = JSON.parse(await readFile(file, "utf8"));
  const MFS = { Enable: false, PinName: "", RepinInterval: "" };
  const service = { API: { Endpoint: "https://pins.example", Key: "secret" }, Policies: { MFS } };
  await writeFile(file, JSON.stringify({ ...document, Pinning: { RemoteServices: { mine: service } } }));
  await lowLevel().repo.config.reread();
  const { RemoteServices } = await host.value<{ RemoteServices: { Service: string }[] }>("pin/remote/service/ls");
  assert.deepEqual(
    RemoteServices.map(({ Service }) => Service),
    ["mine"],
  );
});
