/**
 * Koa middleware before the apps of the host: packages from npm and our own, over the RPC, files
 * and a module.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { HttpModule } from "#core/http/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";
import { hello, long } from "./middleware_apps.ts";

const noise = randomBytes(200_000).toString("base64");

/** A local middleware file: it counts requests, and reports the response. */
const stamp = `export default ({ mark }) => async (context, next) => {
  await next();
  context.set("X-Stamp", [mark, context.status, context.path].join(" "));
};`;

/** A limiter needs a store for its counts, which no configuration can provide. */
const limits = `import ratelimit from ${JSON.stringify(import.meta.resolve("koa-ratelimit"))};
export default (options) => ratelimit({ driver: "memory", db: new Map(), ...options });`;

describe("the option http_middleware", () => {
  let host: TestHost;
  before(async () => {
    host = await startHost({
      prepare: async (folder) => {
        await mkdir(join(folder, "www"));
        await writeFile(join(folder, "www", "long.txt"), long);
        await writeFile(join(folder, "www", "noise.txt"), noise);
        await writeFile(join(folder, "stamp.js"), stamp);
        await writeFile(join(folder, "limits.js"), limits);
      },
      plugins: { mod_hello: hello },
      config: (folder) => ({
        modules_enabled: ["http", "http_errors", "http_files", "http_api", "hello"],
        http_files_dir: join(folder, "www"),
        http_middleware: [
          { use: "koa-compress", options: { threshold: 1000 }, order: 1 },
          "koa-helmet",
          { use: join(folder, "limits.js"), options: { max: 9 }, apps: ["hello"], name: "limits", order: 2 },
          { use: join(folder, "stamp.js"), options: { mark: "own" }, order: -1 },
        ],
      }),
    });
  });
  after(() => host.stop());

  const explained = (path: string, method = "GET") =>
    host.host
      .exports<HttpModule>("http")
      .explain(method, path)
      .middleware.map(({ name }) => name);

  test("appears in the explanation of a request, the outermost first, and only for its apps", () => {
    const before = [join(host.folder, "stamp.js"), "koa-helmet", "koa-compress"];
    assert.deepEqual(explained("/hello"), [...before, "limits"]);
    assert.deepEqual(explained("/files/long.txt"), before);
    assert.deepEqual(explained("/api/v0/version", "POST"), before);
  });

  overEach(
    () => host,
    "answers of a module are packed and guarded",
    async (client) => {
      const plain = await client.request("/hello/long");
      assert.equal(plain.header("content-encoding"), undefined);
      assert.equal(plain.header("content-length"), String(plain.bytes.length));
      assert.equal(plain.header("etag"), '"plain"');
      const packed = await client.request({ path: "/hello/long", headers: { "Accept-Encoding": "gzip" } });
      assert.equal(packed.header("content-encoding"), "gzip");
      assert.equal(gunzipSync(packed.bytes).toString(), plain.text);
      assert.equal(packed.header("etag"), 'W/"plain"', "other bytes, other strong tag");
      for (const { header } of [plain, packed]) {
        assert.equal(header("x-content-type-options"), "nosniff");
        assert.match(header("vary") ?? "", /Accept-Encoding/i);
        assert.equal(header("x-stamp"), "own 200 /hello/long");
      }
    },
  );

  overEach(
    () => host,
    "error pages pass through it, and what a handler throws stays the host's matter",
    async (client) => {
      const broken = await client.request("/hello/broken");
      assert.deepEqual([broken.status, broken.header("x-stamp")], [500, "own 500 /hello/broken"]);
      const missing = await client.request("/files/nothing.txt");
      assert.deepEqual([missing.status, missing.header("x-stamp")], [404, "own 404 /files/nothing.txt"]);
      assert.match(missing.text, /Not Found/);
    },
  );

  overEach(
    () => host,
    "files keep ranges, conditions, lengths and HEAD",
    async (client) => {
      const requested = { "Accept-Encoding": "gzip, br" };
      const whole = await client.request("/files/noise.txt");
      const etag = whole.header("etag") as string;
      assert.deepEqual([whole.text, whole.header("content-length")], [noise, String(noise.length)]);
      const part = await client.request({ path: "/files/noise.txt", headers: { ...requested, Range: "bytes=10-19" } });
      assert.deepEqual([part.status, part.text], [206, noise.slice(10, 20)]);
      assert.equal(part.header("content-range"), `bytes 10-19/${noise.length}`);
      const several = await client.request({ path: "/files/noise.txt", headers: { Range: "bytes=0-1,5-6" } });
      assert.deepEqual([several.status, several.header("content-length")], [206, String(several.bytes.length)]);
      const known = await client.request({
        path: "/files/noise.txt",
        headers: { ...requested, "If-None-Match": etag },
      });
      assert.deepEqual([known.status, known.bytes.length, known.header("etag")], [304, 0, etag]);
      const head = await client.request({ method: "HEAD", path: "/files/noise.txt" });
      assert.deepEqual([head.status, head.header("content-length")], [200, String(noise.length)]);
      const packed = await client.request({ path: "/files/long.txt", headers: { "Accept-Encoding": "br" } });
      assert.equal(brotliDecompressSync(packed.bytes).toString(), long);
      assert.match(packed.header("etag") ?? "", /^W\//);
    },
  );

  overEach(
    () => host,
    "the RPC streams through it, trailers and its own headers included",
    async (client) => {
      const version = await client.request({ method: "POST", path: "/api/v0/version" });
      assert.equal(JSON.parse(version.text).Version, "0.9.0");
      assert.match(version.header("server") ?? "", /^go-ipfs/);
      assert.equal(version.header("trailer"), "X-Stream-Error");
      assert.equal(version.header("x-frame-options"), "SAMEORIGIN");
      const boundary = "edge";
      const body = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${noise}\r\n--${boundary}--\r\n`;
      const headers = { "Content-Type": `multipart/form-data; boundary=${boundary}` };
      const added = await client.request({ method: "POST", path: "/api/v0/add", headers, body });
      const { Hash } = JSON.parse(added.text.trim().split("\n").at(-1) as string);
      const cat = { method: "POST", path: `/api/v0/cat?arg=${Hash}` };
      const plain = await client.request(cat);
      assert.deepEqual([plain.text, plain.header("x-content-length")], [noise, String(noise.length)]);
      const packed = await client.request({ ...cat, headers: { "Accept-Encoding": "gzip" } });
      // Go clients of the RPC rely on receiving pieces at once, so the RPC asks compressors to
      // leave them alone.
      assert.deepEqual([packed.text, packed.header("content-encoding")], [noise, undefined]);
    },
  );

  test("can refuse by its own response, which outer middleware still sees", async () => {
    const client = host.client("HTTP/1.1");
    let last = await client.request("/hello/limited");
    for (let tries = 0; tries < 20 && last.status === 200; tries += 1) last = await client.request("/hello/limited");
    assert.equal(last.status, 429);
    assert.match(last.text, /^Rate limit exceeded/);
    assert.equal(last.header("x-stamp"), "own 429 /hello/limited");
    assert.equal(await client.status("/files/long.txt"), 200, "other apps are not limited");
  });

  test("has counters and times", () => {
    const [outermost, , , limiter] = host.host.exports<HttpModule>("http").middleware();
    assert.ok(limiter !== undefined && limiter.answered >= 1 && limiter.answered < limiter.requests);
    assert.ok(outermost !== undefined && outermost.requests > limiter.requests && outermost.time > 0);
    assert.equal(outermost.failed, 0);
  });

  for (const [title, entry, wrong] of [
    [
      "cannot be imported",
      { use: "./nowhere.js" },
      /http_middleware\[0\] is .*nowhere.js, but that cannot be imported/,
    ],
    ["is no package", "no-such-package-here", /no-such-package-here, but that cannot be imported/],
    ["makes no middleware", { use: "koa", export: "isHttpError" }, /makes no Koa middleware/],
    ["has an unknown field", { use: "koa-helmet", oder: 1 }, /http_middleware\[0\].oder .* the fields are use, export/],
    ["names no package", { order: 1 }, /http_middleware\[0\].use .* a package or a path/],
  ] as const) {
    test(`stops the start when an entry ${title}`, async () => {
      await assert.rejects(startHost({ config: { http_middleware: [entry], modules_enabled: ["http"] } }), wrong);
    });
  }
});
