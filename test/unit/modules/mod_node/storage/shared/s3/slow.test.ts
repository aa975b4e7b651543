/**
 * A store that stalls, or whose responses are slow: callers get an error in bounded time, and the
 * store recovers by itself.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Availability } from "#node/storage/shared/availability.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import type { Limits } from "#node/storage/shared/s3/settings.ts";
import { openSharedBlocks } from "#node/storage/shared/segments/open.ts";
import { FaultyHttp } from "#test/support/engines/faulty_http.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { S3Server } from "#test/support/engines/s3_server.ts";
import { eventually } from "#test/support/eventually.ts";
import { samples } from "../../blockstore/samples.ts";
import { readStream } from "./contract.ts";

interface Setting extends AsyncDisposable {
  readonly server: S3Server;
  readonly proxy: FaultyHttp;
  readonly store: ReturnType<typeof openS3>;
}

async function setUp(limits: Partial<Limits>): Promise<Setting> {
  const server = await S3Server.start("bucket");
  const proxy = await FaultyHttp.start(server.endpoint);
  const environment = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" };
  const store = openS3({ url: "s3://bucket/here", endpoint: proxy.endpoint, limits }, environment);
  return {
    server,
    proxy,
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test("a slow response is given up, even if it makes some progress", async () => {
  await using setting = await setUp({ stall: 1000, rate: 100_000, patience: 1500 });
  const { server, proxy, store } = setting;
  const content = Buffer.alloc(300_000, "content ");
  server.bucket("bucket").put("here/a", content, {}, true);
  proxy.rate = 1000;
  const { body } = (await store.stream("a")) ?? assert.fail();
  await assert.rejects(readStream(body), { code: "STORE_UNAVAILABLE", message: /the response is too slow/ });
  await assert.rejects(store.read("a", { start: 0, length: 200_000 }), { code: "STORE_UNAVAILABLE" });
  assert.ok(store.metrics.get.requests > 2);
});

test("a stalled store ends a call after its patience, without one more stalled response", async () => {
  await using setting = await setUp({ stall: 60_000, patience: 3000 });
  const { server, proxy, store } = setting;
  server.bucket("bucket").put("here/a", Buffer.from("content"), {}, true);
  let requests = 0;
  proxy.choose = () => ((requests += 1) === 1 ? "reset" : "swallowed");
  const begin = performance.now();
  await assert.rejects(store.head("a"), { code: "STORE_UNAVAILABLE", message: /Headers Timeout/ });
  assert.ok(requests >= 2);
  // Without the limit, the call would take 63 seconds. The margin is for a busy machine.
  assert.ok(performance.now() - begin < 50_000);
});

test("a probe reads more than a head after slow responses", async () => {
  await using setting = await setUp({ stall: 3000, rate: 1_000_000, patience: 0 });
  const { server, proxy, store } = setting;
  server.bucket("bucket").put("here/a", Buffer.alloc(100_000, "content "), {}, true);
  await store.probe();
  assert.deepEqual(requestsOf(server), ["HEAD probe"]);
  proxy.rate = 1000;
  await assert.rejects(store.read("a", { start: 0, length: 90_000 }), { code: "STORE_UNAVAILABLE" });
  await assert.rejects(store.probe(), { code: "STORE_UNAVAILABLE" });
  proxy.rate = undefined;
  await store.probe();
  await store.probe();
  assert.deepEqual(requestsOf(server).slice(-2), ["GET a", "HEAD probe"]);
});

const requestsOf = ({ requests }: S3Server): string[] => requests.map((each) => each.replace("/bucket/here/", ""));

test("writes are refused and cached blocks are read while the store stalls, and afterwards everything works", async (t) => {
  await using setting = await setUp({ stall: 3000, patience: 0 });
  const { proxy, store } = setting;
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const problems: (string | undefined)[] = [];
  const availability = new Availability((problem) => problems.push(problem), { probeMs: 20, tryMs: 20 });
  t.after(() => availability.close());
  const objects = availability.watch(store, {
    probe: (target) => target.probe(),
    refused: ["putNew", "stream"],
    streams: ["stream"],
  });
  const log = new MemoryLog().open();
  const blocks = await openSharedBlocks({ folder, objects, log, remove: async () => {} });
  try {
    const [cached, late, more] = samples(3, 1000) as [Sample, Sample, Sample];
    await blocks.put([cached]);
    await blocks.sync();
    proxy.choose = () => "swallowed";
    await blocks.put([late]);
    await assert.rejects(blocks.sync(), { code: "STORE_UNAVAILABLE" });
    assert.match(String(availability.problem), /s3:\/\/bucket\/here/);
    const { requests } = store.metrics.put;
    await blocks.put([more]);
    await assert.rejects(blocks.sync(), { code: "STORE_UNAVAILABLE" });
    assert.equal(store.metrics.put.requests, requests, "calls do not wait for a store that is known to stall");
    assert.deepEqual(await blocks.get(cached.cid), cached.bytes);
    assert.equal(await blocks.has(late.cid), true);
    // A running probe waits for its timeout.
    proxy.choose = () => undefined;
    proxy.cut();
    await eventually("its return is noticed", () => availability.problem === undefined);
    await blocks.sync();
    assert.equal(problems.length, 2);
  } finally {
    await blocks.close();
    await log.close();
  }
});

type Sample = ReturnType<typeof samples>[number];
