import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeModule } from "modhost/node";
import { createTestHost, type TestHost } from "#core/testing/index.ts";

const hour = 3600;

/** Starts a host with a manual clock and a node without a network. */
const start = (config: Record<string, unknown>) =>
  createTestHost({
    clock: "manual",
    modules: [],
    config: { modules_enabled: ["http", "http_api"], node_offline: true, ...config },
  });

async function call<T>(host: TestHost, path: string, content?: string): Promise<T> {
  const body = content === undefined ? undefined : new FormData();
  body?.append("file", new File([content as string], "a"));
  const response = await host.inject({
    method: "POST",
    path: `/api/v0/${path}`,
    ...(body === undefined ? {} : { body }),
  });
  assert.equal(response.status, 200, response.body);
  return JSON.parse(response.body) as T;
}

/** Adds content without a pin and returns its CID. */
const loose = async (host: TestHost, content: string) =>
  (await call<{ Hash: string }>(host, "add?pin=false", content)).Hash;

const isHere = async (host: TestHost, cid: string) =>
  (await host.inject({ method: "POST", path: `/api/v0/block/stat?arg=${cid}` })).status === 200;

test("garbage is collected once per period if a repo is above its watermark", async () => {
  await using host = await start({ node_gc: true });
  await call(host, "config?arg=Datastore.StorageMax&arg=1KB");
  const pinned = (await call<{ Hash: string }>(host, "add", "kept")).Hash;
  const first = await loose(host, "first");
  await host.clock.advance(hour - 1);
  assert.equal(await isHere(host, first), true);
  await host.clock.advance(1);
  assert.deepEqual([await isHere(host, first), await isHere(host, pinned)], [false, true]);
  const second = await loose(host, "second");
  await host.clock.advance(hour);
  assert.deepEqual([await isHere(host, second), await isHere(host, pinned)], [false, true]);
  const said = host.logged("info").map(({ msg }) => msg);
  assert.equal(said.filter((line) => line.includes("nearly full")).length, 2);
});

test("a repo with room, and a full one without node_gc, is not collected", async () => {
  for (const [config, size] of [
    [{ node_gc: true }, "10GB"],
    [{}, "1KB"],
  ] as const) {
    await using host = await start(config);
    await call(host, `config?arg=Datastore.StorageMax&arg=${size}`);
    const cid = await loose(host, "loose");
    await host.clock.advance(3 * hour);
    assert.equal(await isHere(host, cid), true);
  }
});

test("the watermark is a percentage of the maximum size", async () => {
  await using host = await start({ node_gc: true });
  const { RepoSize } = await call<{ RepoSize: number }>(host, "repo/stat");
  await call(host, `config?arg=Datastore.StorageMax&arg=${RepoSize * 3}B`);
  const cid = await loose(host, "loose");
  await host.clock.advance(hour);
  assert.equal(await isHere(host, cid), true);
  await call(host, "config?arg=Datastore.StorageGCWatermark&arg=30&json=true");
  await host.clock.advance(hour);
  assert.equal(await isHere(host, cid), false);
});

test("a failed collection is logged as an error, and the next one is tried", async () => {
  await using host = await start({ node_gc: true });
  const { lowLevel: node } = host.host.exports<NodeModule>("node");
  const { isNearlyFull } = node;
  node.isNearlyFull = () => Promise.reject(new Error("the disk is on fire"));
  await host.clock.advance(hour);
  assert.match(
    host
      .logged("error")
      .map(({ msg }) => msg)
      .join(),
    /the disk is on fire/,
  );
  node.isNearlyFull = isNearlyFull;
  await call(host, "config?arg=Datastore.StorageMax&arg=1KB");
  const cid = await loose(host, "loose");
  await host.clock.advance(hour);
  assert.equal(await isHere(host, cid), false);
});
