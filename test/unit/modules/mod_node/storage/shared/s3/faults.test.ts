import assert from "node:assert/strict";
import { test } from "node:test";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import type { ObjectStore } from "#node/storage/shared/s3/objects.ts";
import type { Limits } from "#node/storage/shared/s3/settings.ts";
import { atRandom, FaultyHttp, type HttpFault, INTERNAL_ERROR, SLOW_DOWN } from "#test/support/engines/faulty_http.ts";
import { FaultyTcp } from "#test/support/engines/faulty_tcp.ts";
import { s3Programs } from "#test/support/engines/s3_programs.ts";
import { S3Server } from "#test/support/engines/s3_server.ts";
import { eventually } from "#test/support/eventually.ts";
import { seeded } from "#test/support/seeded.ts";
import { readStream } from "./contract.ts";

const PART = 5 * 1024 * 1024;
const PATIENT = { patience: 600_000 };

function open(endpoint: string, limits: Partial<Limits>): ObjectStore {
  const environment = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" };
  return openS3({ url: "s3://bucket", endpoint, limits }, environment);
}

interface Setting {
  readonly server: S3Server;
  readonly proxy: FaultyHttp;
  readonly store: ObjectStore;
}

/** A store behind a faulty proxy. */
function behindProxy(name: string, limits: Partial<Limits>, body: (setting: Setting) => Promise<void>): void {
  test(name, async () => {
    await using server = await S3Server.start("bucket");
    await using proxy = await FaultyHttp.start(server.endpoint);
    const store = open(proxy.endpoint, limits);
    try {
      await body({ server, proxy, store });
    } finally {
      await store.close();
    }
  });
}

const passing: HttpFault[] = ["reset", "lost", "truncated", SLOW_DOWN, INTERNAL_ERROR, { status: 429, code: "" }];
const content = Buffer.alloc(100_000, "content ");

behindProxy("every call is repeated after every temporary fault", PATIENT, async ({ server, proxy, store }) => {
  const bucket = server.bucket("bucket");
  for (const [index, fault] of passing.entries()) {
    const key = `k${index}`;
    proxy.next(fault);
    // A request without a response may have succeeded.
    const written = await store.putNew(key, content);
    assert.equal(written, fault === "lost" || fault === "truncated" ? "same" : "written");
    assert.ok(bucket.get(key).body.equals(content));
    for (const run of [
      async () => assert.equal((await store.read(key, { start: 8, length: 7 }))?.length, 7),
      async () => assert.equal((await store.head(key))?.bytes, content.length),
      async () => assert.equal((await Array.fromAsync(store.list("k"))).flat().length, 1),
      async () =>
        assert.equal((await readStream((await store.stream(key))?.body ?? assert.fail())).length, content.length),
      () => store.put(key, content),
      () => store.delete([key, "none"]),
      () => store.delete([key]),
    ]) {
      proxy.next(fault);
      await run();
    }
    assert.equal(bucket.objects.size, 0);
  }
  for (const kind of ["put", "get", "list", "delete"] as const)
    assert.ok(store.metrics[kind].retries >= passing.length);
});

behindProxy("a bucket that refuses writes is named with the remedy, and stays readable", {}, async (setting) => {
  const { server, proxy, store } = setting;
  server.bucket("bucket").put("a", content, {}, true);
  const refusing = (status: number, code: string) => {
    proxy.choose = (method) => (method === "PUT" || method === "DELETE" ? { status, code } : undefined);
  };
  refusing(403, "AccessDenied");
  const denied = {
    code: "STORE_READ_ONLY",
    kind: "unavailable",
    message: /takes no writes.*PUT s3:\/\/bucket\/b: 403 AccessDenied: .*Remedy: give these credentials the right to/,
  };
  await assert.rejects(store.putNew("b", content), denied);
  await assert.rejects(store.put("b", content), denied);
  await assert.rejects(store.delete(["a"]), { code: "STORE_READ_ONLY", message: /DELETE s3:\/\/bucket\/a: 403/ });
  for (const [status, code] of [
    [403, "QuotaExceeded"],
    [400, "XMinioAdminBucketQuotaExceeded"],
    [507, "XMinioStorageFull"],
  ] as const) {
    refusing(status, code);
    const full = {
      code: "STORE_READ_ONLY",
      message: new RegExp(`${code}: .*Remedy: raise the quota of the bucket, or`),
    };
    await assert.rejects(store.putNew("b", content), full);
  }
  assert.equal((await store.read("a", { start: 8, length: 7 }))?.length, 7);
});

behindProxy("a body that breaks off continues at the same offset", PATIENT, async ({ server, proxy, store }) => {
  server.bucket("bucket").put("a", content, {}, true);
  proxy.next("truncated", "truncated", "reset", "truncated");
  const { body } = (await store.stream("a", { range: { start: 1000, length: 80_000 } })) ?? assert.fail();
  assert.ok((await readStream(body)).equals(content.subarray(1000, 81_000)));
  assert.equal(store.metrics.get.received, 80_000);
  proxy.next("truncated", "truncated", "reset", "truncated");
  const seen: number[] = [];
  const read = await store.read("a", { start: 1000, length: 80_000 }, { onProgress: (there) => seen.push(there) });
  assert.ok(content.subarray(1000, 81_000).equals(read ?? assert.fail()));
  assert.equal(store.metrics.get.received, 160_000);
  assert.deepEqual(
    seen,
    seen.toSorted((one, other) => one - other),
  );
  proxy.next("truncated");
  const changed = (await store.stream("a")) ?? assert.fail();
  server.bucket("bucket").put("a", Buffer.alloc(100_000, "another"), {}, false);
  await assert.rejects(readStream(changed.body), /a was changed while it was read/);
});

behindProxy(
  "a large object whose requests fail exists once, and no part is left",
  { part: PART, ...PATIENT },
  async (setting) => {
    const { server, proxy, store } = setting;
    const large = Buffer.alloc(PART + 1, "large");
    const bucket = server.bucket("bucket");
    for (const fault of passing) {
      const failed = new Set<string>();
      proxy.choose = (method, url) => {
        const kind = `${method} ${url.replace(/=[^&]*/g, "")}`;
        return failed.has(kind) ? undefined : failed.add(kind) && fault;
      };
      const key = `large-${JSON.stringify(fault)}`;
      assert.match(await store.putNew(key, large), /written|same/);
      assert.ok(bucket.get(key).body.equals(large));
      assert.ok(failed.size >= 4);
      // An upload whose id was lost belongs to nobody.
      await store.abandonUploads(() => true);
      assert.equal(bucket.uploads.size, 0);
    }
  },
);

behindProxy(
  "permanent faults are reported soon, with few retries",
  { patience: 600_000 },
  async ({ server, proxy, store }) => {
    proxy.choose = () => ({ ...SLOW_DOWN });
    const calls = Array.from({ length: 60 }, () => store.head("a"));
    for (const result of await Promise.allSettled(calls)) {
      assert.equal(result.status, "rejected");
      assert.equal(result.reason.code, "STORE_UNAVAILABLE");
      assert.match(result.reason.message, /HEAD s3:\/\/bucket\/a: 503/);
    }
    const { requests, retries, errors } = store.metrics.head;
    assert.deepEqual([requests, errors, server.requests.length], [60 + retries, requests, 0]);
    assert.ok(retries <= 50 + 60 * 0.2, `${retries} retries`);
  },
);

behindProxy(
  "the delay that the store requests is respected, unless it is too long",
  { patience: 20_000 },
  async ({ proxy, store }) => {
    proxy.next({ ...SLOW_DOWN, retryAfter: 1 });
    const began = performance.now();
    assert.equal(await store.head("a"), undefined);
    assert.ok(performance.now() - began >= 999);
    proxy.next({ ...SLOW_DOWN, retryAfter: 3600 });
    await assert.rejects(store.head("a"), { code: "STORE_UNAVAILABLE" });
    assert.equal(store.metrics.head.retries, 1);
  },
);

behindProxy(
  "a silent store is given up, and a signal frees the connection immediately",
  { patience: 0, stall: 500 },
  async (setting) => {
    const { proxy, store } = setting;
    proxy.choose = () => "swallowed";
    await assert.rejects(store.head("a"), { code: "STORE_UNAVAILABLE", message: /Headers Timeout/ });
    await eventually("its connection is gone", () => proxy.swallowed === 0);
    const patient = open(proxy.endpoint, { stall: 600_000 });
    const over = new AbortController();
    const payload = {
      file: { read: async ([into]: readonly Uint8Array[]) => into?.length ?? 0 },
      start: 0,
      length: 4 * PART,
    };
    const ended = [
      assert.rejects(patient.read("a", { start: 0, length: 1 }, { signal: over.signal }), /no longer wanted/),
      assert.rejects(patient.put("a", payload, { signal: over.signal }), /no longer wanted/),
    ];
    await eventually("both wait", () => proxy.swallowed === 2);
    over.abort(new Error("no longer wanted"));
    await Promise.all(ended);
    await eventually("their connections are gone", () => proxy.swallowed === 0);
    const closed = assert.rejects(patient.head("a"), { code: "STORE_CLOSED" });
    await eventually("one waits", () => proxy.swallowed === 1);
    await patient.close();
    await closed;
  },
);

test("an upload that the network swallows is given up, and a later upload succeeds when the network works again", async () => {
  await using server = await S3Server.start("bucket");
  await using network = await FaultyTcp.start(server.port);
  const store = open(`http://127.0.0.1:${network.port}`, { patience: 0, stall: 500, part: 64 * PART });
  network.swallow();
  await assert.rejects(store.putNew("a", Buffer.alloc(4 * PART)), { code: "STORE_UNAVAILABLE" });
  network.refuse();
  await eventually("connections are reset", () => network.connections === 0);
  await assert.rejects(store.head("a"), { code: "STORE_UNAVAILABLE" });
  network.restore();
  await store.close();
  const patient = open(`http://127.0.0.1:${network.port}`, PATIENT);
  network.latency = 1;
  assert.equal(await patient.putNew("a", content), "written");
  network.cut();
  const lost = network.loseResponse(/^HTTP\/1.1 200/);
  assert.equal(await patient.putNew("b", content), "same");
  await lost;
  assert.equal(patient.metrics.put.sent, 2 * content.length);
  await patient.close();
});

test("credentials that the store no longer accepts are replaced at runtime", async () => {
  await using server = await S3Server.start("bucket");
  const environment: Record<string, string> = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" };
  const store = openS3({ url: "s3://bucket", endpoint: server.endpoint }, environment);
  await store.put("a", content);
  server.users[0] = { accessKeyId: "new", secretAccessKey: "new-secret", sessionToken: "token" };
  await assert.rejects(store.put("a", content), { code: "STORE_READ_ONLY", message: /InvalidAccessKeyId/ });
  const unread = { kind: "unavailable", message: /InvalidAccessKeyId/ };
  await assert.rejects(store.read("a", { start: 0, length: 1 }), unread);
  Object.assign(environment, {
    AWS_ACCESS_KEY_ID: "new",
    AWS_SECRET_ACCESS_KEY: "new-secret",
    AWS_SESSION_TOKEN: "token",
  });
  await store.put("a", content);
  await store.close();
});

for (const [name, skip, start] of [
  ["the server of the tests", false, () => S3Server.start("bucket")],
  ...s3Programs.map(({ name, missing, start }) => [name, missing, () => start("bucket")] as const),
] as const) {
  test(`${name}: results are right in a storm of faults`, { skip }, async (context) => {
    const seed = Date.now() % 2 ** 31;
    context.diagnostic(`seed ${seed}`);
    await using server = await start();
    await using proxy = await FaultyHttp.start(server.endpoint);
    const random = seeded(seed);
    proxy.choose = atRandom(random, 0.15, passing);
    const store = open(proxy.endpoint, PATIENT);
    const history = (host: number) => storm(store, `host${host}/`, seeded(seed + host));
    await Promise.all([1, 2, 3, 4].map(history));
    proxy.choose = () => undefined;
    assert.ok(store.metrics.put.errors > 0);
    await store.close();
  });
}

/**
 * Random calls whose results are compared with the expected ones. A call may fail, and may then
 * have succeeded anyway.
 */
async function storm(store: ObjectStore, at: string, random: () => number): Promise<void> {
  const below = (bound: number) => Math.floor(random() * bound);
  /** Possible contents by key; undefined for a missing object. */
  const known = new Map<string, (string | undefined)[]>();
  const attempt = async (run: () => Promise<void>) => {
    try {
      await run();
      return true;
    } catch (error) {
      assert.equal((error as { code?: string }).code, "STORE_UNAVAILABLE");
      return false;
    }
  };
  for (let step = 0; step < 40; step += 1) {
    const key = `${at}${below(4)}`;
    const before = known.get(key) ?? [undefined];
    const value = `${step} ${"x".repeat(below(3000))}`;
    const call = below(3);
    if (call === 0) {
      let result: string | undefined;
      const done = await attempt(async () => {
        result = await store.putNew(key, Buffer.from(value));
      });
      if (!done) known.set(key, [...before, value]);
      else if (result === "different")
        known.set(
          key,
          before.filter((each) => each !== undefined),
        );
      else {
        assert.ok(before.includes(undefined) || before.includes(value), `${key} was written over`);
        known.set(key, [value]);
      }
      assert.ok((known.get(key) ?? []).length > 0);
    } else if (call === 1) {
      const done = await attempt(() => store.delete([key, `${key}-none`].slice(0, 1 + below(2))));
      known.set(key, done ? [undefined] : [...before, undefined]);
    } else {
      await attempt(async () => {
        const { body } = (await store.stream(key)) ?? {};
        const found = body && (await readStream(body)).toString();
        assert.ok(before.includes(found), `${key} is not what was written`);
        known.set(key, [found]);
      });
    }
  }
}
