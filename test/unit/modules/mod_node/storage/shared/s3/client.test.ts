import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import type { ObjectStore } from "#node/storage/shared/s3/objects.ts";
import type { Limits } from "#node/storage/shared/s3/settings.ts";
import { FaultyHttp } from "#test/support/engines/faulty_http.ts";
import { type S3Engine, s3Programs } from "#test/support/engines/s3_programs.ts";
import { S3Server } from "#test/support/engines/s3_server.ts";
import { fileOf, readStream, storeContract } from "./contract.ts";

const URL = "s3://bucket/some/prefix";

function open(
  endpoint: string,
  limits: Partial<Limits> = {},
  settings = { url: URL },
  secret = "test-secret",
): ObjectStore {
  const environment = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: secret };
  return openS3({ ...settings, endpoint, limits }, environment);
}

/** One server for all tests of the contract, started by the first one. */
function shared(start: () => Promise<S3Engine | S3Server>): () => Promise<ObjectStore> {
  let server: Promise<S3Engine | S3Server> | undefined;
  after(async () => (await server)?.[Symbol.asyncDispose]());
  return async () => open((await (server ??= start())).endpoint);
}

storeContract(
  "the server of the tests",
  shared(() => S3Server.start("bucket")),
);
for (const { name, missing, start } of s3Programs) {
  storeContract(
    name,
    shared(() => start("bucket")),
    { skip: missing },
  );
}

const PART = 5 * 1024 * 1024;
const large = Buffer.alloc(2 * PART + 1000, "a large object, in parts; ");

for (const [name, skip, start] of [
  ["the server of the tests", false, () => S3Server.start("bucket")],
  ...s3Programs.map(({ name, missing, start }) => [name, missing, () => start("bucket")] as const),
] as const) {
  test(`${name}: a large object is sent in parts, as a new one only once, and leaves no parts behind`, {
    skip,
  }, async () => {
    await using server = await start();
    const store = open(server.endpoint, { part: PART });
    const payload = { file: fileOf(large, PART), start: 0, length: large.length };
    assert.equal(await store.putNew("large", payload), "written");
    assert.deepEqual([store.metrics.part.requests, store.metrics.upload.requests], [3, 2]);
    assert.ok((await readStream((await store.stream("large"))?.body ?? assert.fail())).equals(large));
    assert.equal(await store.putNew("large", large), "same");
    assert.equal(store.metrics.part.requests, 3);
    assert.equal(await store.putNew("large", Buffer.alloc(large.length, "another")), "different");
    await store.put("large", Buffer.alloc(large.length, "another"));
    assert.equal(Buffer.from((await store.read("large", { start: PART, length: 7 })) ?? "").length, 7);
    const racing = [1, 2].map((each) => store.putNew("raced", Buffer.alloc(large.length, String(each))));
    assert.deepEqual((await Promise.all(racing)).toSorted(), ["different", "written"]);
    assert.equal(await store.abandonUploads(() => true), 0);
    await store.close();
  });
}

test("a failed or aborted upload leaves no parts, and uploads of dead hosts are aborted", async () => {
  await using server = await S3Server.start("bucket");
  const store = open(server.endpoint, { part: PART });
  const bucket = server.bucket("bucket");
  const file = {
    read: async () => {
      throw new Error("the disk is gone");
    },
  };
  const sha256 = new Uint8Array(32);
  const failed = store.putNew("a", { file, start: 0, length: large.length }, { sha256 });
  await assert.rejects(failed, /cannot read a file to upload: the disk is gone/);
  assert.equal(bucket.uploads.size, 0);
  const over = new AbortController();
  bucket.putPart = () => {
    over.abort(new Error("no longer wanted"));
    return '"etag"';
  };
  await assert.rejects(store.putNew("b", large, { signal: over.signal }), /no longer wanted/);
  assert.equal(bucket.uploads.size, 0);
  bucket.beginUpload("some/prefix/left", {});
  bucket.beginUpload("some/prefix/right", {});
  bucket.beginUpload("of/others", {});
  assert.equal(await store.abandonUploads((key) => key.startsWith("l")), 1);
  assert.equal(await store.abandonUploads(() => true), 1);
  assert.deepEqual(
    [...bucket.uploads.values()].map(({ key }) => key),
    ["of/others"],
  );
  await store.close();
});

test("lists continue page by page, and many objects are deleted with few requests", async () => {
  await using server = await S3Server.start("bucket");
  const store = open(server.endpoint);
  const bucket = server.bucket("bucket");
  const keys = Array.from({ length: 2500 }, (_, index) => `k${String(index).padStart(5, "0")} &`);
  for (const key of keys) bucket.put(`some/prefix/${key}`, Buffer.alloc(1), {}, true);
  bucket.put("some/prefiy", Buffer.alloc(1), {}, true);
  const pages = await Array.fromAsync(store.list("k"));
  assert.deepEqual(
    pages.map(({ length }) => length),
    [1000, 1000, 500],
  );
  assert.deepEqual(
    pages.flat().map(({ key }) => key),
    keys,
  );
  await store.delete(keys);
  assert.deepEqual([...bucket.objects.keys()], ["some/prefiy"]);
  assert.deepEqual([store.metrics.list.requests, store.metrics.delete.requests], [3, 3]);
  await store.close();
});

test("permanent errors name the remedy", async () => {
  await using server = await S3Server.start("bucket");
  const rejects = async (message: RegExp, store = open(server.endpoint)) => {
    await assert.rejects(store.check(), (error: Error & { code?: string }) => {
      assert.match(error.message, message);
      assert.match(String(error.code), /^OBJECT_STORE_(?:FAULT|UNAVAILABLE|UNFIT)$/);
      return true;
    });
    await store.close();
  };
  await rejects(/none\/.*NoSuchBucket.*create the bucket/, open(server.endpoint, {}, { url: "s3://none" }));
  server.clock = () => Date.now() + 3_600_000;
  await rejects(/403 RequestTimeTooSkewed: .* set it, and synchronize it by NTP/);
  const skewed = open(server.endpoint);
  await assert.rejects(skewed.head("a"), /RequestTimeTooSkewed: the clock of the store is 3\d{3} s ahead/);
  await skewed.close();
  server.clock = Date.now;
  server.ignoresIfNoneMatch = true;
  await rejects(/does not honour conditional writes/);
  assert.equal(server.bucket("bucket").objects.size, 0);
  server.users[0] = { accessKeyId: "test", secretAccessKey: "other" };
  const store = open(server.endpoint);
  await assert.rejects(store.put("a", Uint8Array.of(1)), {
    message:
      /takes no writes.*: PUT s3:\/\/bucket\/some\/prefix\/a: 403 SignatureDoesNotMatch: .*[^.]\. Remedy: check the credentials/,
  });
  assert.equal(store.metrics.put.requests, 1);
  await store.close();
});

for (const { name, missing, start } of s3Programs) {
  test(`${name}: refusals name the remedy, long lists continue, and abandoned uploads are found`, {
    skip: missing,
  }, async (t) => {
    await using server = await start("bucket");
    const rejects = async (message: RegExp, settings?: { url: string }, secret?: string) => {
      const store = open(server.endpoint, {}, settings, secret);
      await assert.rejects(store.check(), message);
      await store.close();
    };
    await rejects(/NoSuchBucket.*create the bucket/, { url: "s3://none" });
    await rejects(/403 SignatureDoesNotMatch: .*check the credentials/, undefined, "another-secret");
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() - 3_600_000 });
    await rejects(/403 RequestTimeTooSkewed: .* set it, and synchronize it by NTP/);
    t.mock.timers.reset();
    const store = open(server.endpoint);
    const keys = Array.from({ length: 1001 }, (_, index) => `k${String(index).padStart(5, "0")} &`);
    await Promise.all(keys.map((key) => store.put(key, Buffer.alloc(1))));
    const pages = await Array.fromAsync(store.list("k"));
    assert.deepEqual(
      pages.flat().map(({ key }) => key),
      keys,
    );
    assert.ok(pages.length > 1);
    await store.delete(keys);
    assert.deepEqual(await Array.fromAsync(store.list("")), []);
    await using proxy = await FaultyHttp.start(server.endpoint);
    const refused = { status: 403, code: "AccessDenied" };
    proxy.choose = (method, url) => (method === "DELETE" || url.includes("partNumber=2") ? refused : undefined);
    const failing = open(proxy.endpoint, { part: PART });
    await assert.rejects(failing.putNew("left", large), /AccessDenied/);
    await failing.close();
    assert.equal(await store.abandonUploads((key) => key === "left"), 1);
    assert.equal(await store.abandonUploads(() => true), 0);
    await store.close();
  });
}

test("a missing object is a valid response and counts as no error", async () => {
  await using server = await S3Server.start("bucket");
  const store = open(server.endpoint);
  assert.equal(await store.head("none"), undefined);
  assert.equal(await store.read("none", { start: 0, length: 1 }), undefined);
  const { head, get } = store.metrics;
  assert.deepEqual([head.requests, head.errors, get.requests, get.errors], [1, 0, 1, 0]);
  await store.close();
});

test("a missing store is unavailable", async () => {
  const server = await S3Server.start("bucket");
  const { endpoint } = server;
  await server[Symbol.asyncDispose]();
  const store = open(endpoint, { patience: 100 });
  await assert.rejects(store.head("a"), {
    code: "STORE_UNAVAILABLE",
    message: /HEAD s3:\/\/bucket\/some\/prefix\/a: .*ECONNREFUSED/,
  });
  assert.equal(store.metrics.head.errors, store.metrics.head.requests);
  await store.close();
  await assert.rejects(store.head("a"), { code: "STORE_CLOSED" });
});
