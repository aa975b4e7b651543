/** Responses that clients get from apps with compression. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, utimes, writeFile } from "node:fs/promises";
import http from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib";
import { event_stream, type HttpModule } from "#core/http/index.ts";
import type { HttpProvider, Module, ModuleFunction, ResponseHeaders } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";
import { reconfigured } from "#test/unit/core/operations/reconfigured.ts";

const long = JSON.stringify(Array.from({ length: 300 }, (_, at) => ({ at, name: `item ${at}` })));
const plain = { content_type: "application/json" };
const open: Record<string, (bytes: Buffer) => Buffer> = {
  br: (bytes) => brotliDecompressSync(bytes),
  gzip: (bytes) => gunzipSync(bytes),
  zstd: (bytes) => zstdDecompressSync(bytes),
};

type Route = HttpProvider["route"];

/**
 * Starts a host with the app `hello`, whose path `/headers/...` responds with what the test sets.
 */
async function serving(
  http_compress: unknown,
  route: Route = {},
  { config = {}, files = {} }: { config?: Record<string, unknown>; files?: Record<string, string> } = {},
) {
  const load: ModuleFunction = (module: Module) =>
    module.provides("http", { route: { "GET /long": () => ({ headers: plain, body: long }), ...route } });
  const host = await startHost({
    prepare: async (folder) => {
      await mkdir(join(folder, "www"));
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, "www", name), text);
    },
    modules: { mod_hello: load },
    config: (folder) => ({
      modules_enabled: ["http", "http_errors", "http_files", "http_compress"],
      http_files_dir: join(folder, "www"),
      http_compress,
      ...config,
    }),
  });
  const ask = (
    path: string,
    coding?: string,
    headers: Record<string, string> = {},
    { method = "GET", by = "HTTP/1.1" as Parameters<typeof host.client>[0] } = {},
  ) =>
    host.client(by).request({
      path,
      method,
      headers: { ...(coding === undefined ? {} : { "Accept-Encoding": coding }), ...headers },
    });
  return { host, ask, [Symbol.asyncDispose]: () => host.stop() };
}

const metric = async (app: Awaited<ReturnType<typeof serving>>, name: string) => {
  const text = await app.host.client("HTTP/1.1").text("/metrics");
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
};

describe("a response", () => {
  test("has the coding that the client prefers, over every protocol", async () => {
    await using app = await serving({ "*": {} });
    for (const by of ["HTTP/1.1", "HTTPS/1.1", "HTTP/2"] as const) {
      const chosen: (string | undefined)[] = [];
      for (const accepted of [
        undefined,
        "gzip",
        "br;q=0.5, gzip;q=0.8",
        "gzip, deflate, br, zstd",
        "identity;q=0",
        "*;q=0.1, zstd;q=0, br;q=0",
        "*",
        "gzip;q=0.4, identity",
        "gzip;q=0",
        "identity;q=0, x-gzip;q=0.2",
        "deflate",
      ]) {
        const reply = await app.ask("/hello/long", accepted, {}, { by });
        const coding = reply.header("content-encoding");
        assert.equal(reply.header("vary"), "Accept-Encoding");
        assert.equal(reply.header("content-length"), String(reply.bytes.length));
        assert.equal((coding === undefined ? reply.bytes : open[coding]?.(reply.bytes))?.toString(), long);
        chosen.push(coding);
      }
      const expected = [undefined, "gzip", "gzip", "zstd", undefined, "gzip", "zstd", undefined, undefined, "gzip"];
      assert.deepEqual(chosen, [...expected, undefined], by);
    }
  });

  test("is not compressed if its size, type, status or headers forbid it", async () => {
    const responding = (headers: ResponseHeaders, body: string | Readable = long, status_code = 200) => ({
      "GET /": () => ({ status_code, headers: { ...plain, ...headers } as ResponseHeaders, body }),
    });
    const cases: Record<string, ReturnType<typeof responding>> = {
      small: responding({}, long.slice(0, 1023)),
      image: responding({ content_type: "image/png" }),
      coded: responding({ content_encoding: "br" }),
      untransformed: responding({ cache_control: "public, no-transform" }),
      part: responding({ content_range: "bytes 0-5/10" }, long, 206),
      digest: responding({ repr_digest: "sha-256=:AA==:" }),
      excepted: responding({}),
    };
    const route = Object.entries(cases).map(([name, value]) => [`GET /${name}`, value["GET /"]]);
    await using app = await serving({ "*": { except: ["/hello/excepted"] } }, Object.fromEntries(route));
    for (const [name, value] of Object.entries(cases)) {
      const reply = await app.ask(`/hello/${name}`, "gzip, br");
      const { headers, body } = value["GET /"]();
      assert.equal(reply.text, body, name);
      assert.equal(reply.header("content-encoding"), headers.content_encoding, name);
      assert.equal(reply.header("vary"), undefined, name);
    }
    assert.equal((await app.ask("/hello/none", "gzip")).status, 404);
  });

  test("to HEAD has the headers of GET", async () => {
    const headers = { ...plain, etag: '"1"', accept_ranges: "bytes" };
    await using app = await serving({ "*": {} }, { "GET /tagged": () => ({ headers, body: long }) });
    const [get, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => app.ask("/hello/tagged", "gzip", {}, { method })),
    );
    const shown = (reply: typeof get) =>
      ["content-encoding", "etag", "vary", "content-type", "accept-ranges"].map((name) => reply?.header(name));
    assert.deepEqual(shown(head), ["gzip", 'W/"1"', "Accept-Encoding", "application/json", undefined]);
    assert.deepEqual(shown(get), shown(head));
    assert.equal(head?.header("content-length"), undefined);
    assert.equal(head?.bytes.length, 0);
  });

  test("is 304 for a client that already has it, whether or not the app knows weak tags", async () => {
    const headers = { ...plain, etag: '"1"', cache_control: "max-age=5" };
    await using app = await serving(
      { "*": {} },
      {
        "GET /strict": ({ request }) =>
          request.headers.if_none_match === '"1"' ? { status_code: 304, headers } : { headers, body: long },
      },
      { files: { "a.txt": long } },
    );
    for (const path of ["/hello/strict", "/files/a.txt"]) {
      const first = await app.ask(path, "br");
      const etag = first.header("etag") as string;
      assert.match(etag, /^W\/"/, path);
      const again = await app.ask(path, "br", { "If-None-Match": etag });
      assert.deepEqual([again.status, again.header("etag"), again.bytes.length], [304, etag, 0], path);
      assert.equal(again.header("vary"), "Accept-Encoding");
      assert.equal(again.header("content-encoding"), undefined);
      const strong = await app.ask(path, "br", { "If-None-Match": etag.slice(2) });
      assert.deepEqual([strong.status, strong.header("etag")], [304, etag.slice(2)], path);
      assert.equal((await app.ask(path, "br", { "If-None-Match": 'W/"other"' })).status, 200);
    }
    const part = await app.ask("/files/a.txt", "br", { Range: "bytes=0-3" });
    assert.deepEqual([part.status, part.text, part.header("content-encoding")], [206, long.slice(0, 4), undefined]);
    // Otherwise a cache could send the part to clients that accept another coding.
    for (const [range, status] of [
      ["0-3", 206],
      ["0-1,3-4", 206],
      ["99999999-", 416],
    ] as const) {
      const reply = await app.ask("/files/a.txt", "br", { Range: `bytes=${range}` });
      assert.deepEqual([reply.status, reply.header("vary")], [status, "Accept-Encoding"], range);
    }
  });

  test("in pieces is compressed as it arrives, with its trailers", async () => {
    let given = 0;
    async function* pieces() {
      for (; given < 20; given += 1) yield long;
    }
    await using app = await serving(
      { "*": {} },
      { "GET /pieces": () => ({ headers: plain, body: pieces(), trailers: { x_sum: "abc" } }) },
    );
    for (const coding of ["gzip", "br", "zstd"]) {
      given = 0;
      const reply = await app.ask("/hello/pieces", coding);
      assert.equal(open[coding]?.(reply.bytes).toString(), long.repeat(20));
      assert.deepEqual([reply.header("content-encoding"), reply.header("content-length")], [coding, undefined]);
      assert.equal(reply.trailers["x-sum"], "abc");
    }
  });

  test("is flushed while its app waits, and a compressed event stream is sent event by event", async () => {
    async function* pieces() {
      yield "first";
      await setTimeout(60_000, undefined, { ref: false });
    }
    await using app = await serving(
      { hello: { event_streams: true }, other: {} },
      {
        "GET /slow": () => ({ headers: plain, body: pieces() }),
        "GET /events": (event) => {
          void event_stream(event).send("first");
          return true;
        },
      },
    );
    for (const path of ["/hello/slow", "/hello/events"]) {
      const request = http.get({ port: app.host.http, path, headers: { "Accept-Encoding": "gzip" } });
      const [response] = (await once(request, "response")) as [http.IncomingMessage];
      assert.equal(response.headers["content-encoding"], "gzip", path);
      const [text] = await once(response.pipe(createGunzip()), "data");
      assert.match(String(text), /first/, path);
      request.destroy();
    }
  });

  test("is not read while the client reads nothing, and ends when the client leaves", async () => {
    let given = 0;
    let ended = 0;
    async function* endless() {
      try {
        for (;;) {
          given += 1;
          yield randomBytes(256 * 1024);
          await setTimeout(0);
        }
      } finally {
        ended += 1;
      }
    }
    await using app = await serving(
      { "*": { encodings: ["gzip"] } },
      {
        "GET /endless": () => ({ headers: plain, body: endless() }),
        "GET /short": () => ({ headers: plain, body: Readable.from([long]) }),
      },
      { config: { http_compress_streams: 1 } },
    );
    const request = http.get({ port: app.host.http, path: "/hello/endless", headers: { "Accept-Encoding": "gzip" } });
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    response.pause();
    let before = -1;
    for (let turn = 0; turn < 100 && given !== before; turn += 1) {
      before = given;
      await setTimeout(150);
    }
    assert.equal(given, before, "it stops");
    request.destroy();
    for (let turn = 0; turn < 200 && ended === 0; turn += 1) await setTimeout(10);
    assert.equal(ended, 1);
    const next = await app.ask("/hello/short", "gzip");
    assert.deepEqual([next.status, next.header("content-encoding")], [200, "gzip"], "its slot is free");
  });

  test("is sent uncompressed if a limit of compression is reached", async () => {
    const release = Promise.withResolvers<void>();
    async function* waiting() {
      yield long;
      await release.promise;
    }
    await using app = await serving(
      { "*": {} },
      {
        "GET /held": () => ({ headers: plain, body: waiting() }),
        "GET /file": () => ({ headers: plain, body: waiting() }),
      },
      { config: { http_compress_streams: 1, modules_enabled: ["http", "http_openmetrics", "http_compress"] } },
    );
    const first = app.ask("/hello/held", "gzip");
    const request = http.get({ port: app.host.http, path: "/hello/held", headers: { "Accept-Encoding": "gzip" } });
    const [second] = (await once(request, "response")) as [http.IncomingMessage];
    release.resolve();
    const codings = [(await first).header("content-encoding"), second.headers["content-encoding"]];
    assert.deepEqual(codings.toSorted(), ["gzip", undefined]);
    second.resume();
    assert.equal(await metric(app, "modhost_http_compress_busy_total"), 1);
  });
});

describe("a file", () => {
  const enabled = { modules_enabled: ["http", "http_openmetrics", "http_files", "http_compress"] };

  test("is compressed once for all concurrent requests, and again after a change", async () => {
    await using app = await serving({ "*": {} }, {}, { config: enabled, files: { "a.json": long } });
    const replies = await Promise.all(Array.from({ length: 8 }, () => app.ask("/files/a.json", "br")));
    for (const reply of replies) {
      assert.equal(reply.header("content-encoding"), "br");
      assert.equal(brotliDecompressSync(reply.bytes).toString(), long);
      assert.deepEqual(reply.bytes, replies[0]?.bytes);
    }
    const used = await metric(app, "modhost_http_compress_cache_bytes");
    assert.ok(used > 0 && used < 2 * (replies[0]?.bytes.length ?? 0) + 1024, `${used}`);
    const hits = await metric(app, "modhost_http_compress_cache_hits_total");
    const head = await app.ask("/files/a.json", "br", {}, { method: "HEAD" });
    assert.equal(head.header("content-length"), String(replies[0]?.bytes.length));
    assert.equal(await metric(app, "modhost_http_compress_cache_hits_total"), hits + 1);
    const path = join(app.host.folder, "www/a.json");
    await writeFile(path, `${long} `);
    await utimes(path, 1e9, 1e9);
    assert.equal(brotliDecompressSync((await app.ask("/files/a.json", "br")).bytes).toString(), `${long} `);
  });

  test("above the maximum cached size is compressed for each response, and a part that an app sends is not taken for the whole", async () => {
    let path = "";
    await using app = await serving(
      { "*": {} },
      { "GET /part": () => ({ headers: plain, body: createReadStream(path, { start: 5, end: 2000 }) }) },
      {
        config: { ...enabled, http_compress_cached_file: 2000 },
        files: { "big.json": long, "small.json": "x".repeat(1500) },
      },
    );
    path = join(app.host.folder, "www/big.json");
    const reply = await app.ask("/files/big.json", "zstd");
    assert.equal(zstdDecompressSync(reply.bytes).toString(), long);
    assert.equal(reply.header("content-length"), undefined);
    assert.equal(zstdDecompressSync((await app.ask("/hello/part", "zstd")).bytes).toString(), long.slice(5, 2001));
    assert.equal(await metric(app, "modhost_http_compress_cache_bytes"), 0);
    const small = await app.ask("/files/small.json", "zstd");
    assert.equal(small.header("content-length"), String(small.bytes.length));
  });

  test("with a precompressed form next to it is sent in that form, unless that is older", async () => {
    const forms = { "a.txt": long, "a.txt.zst": "as zstd", "a.txt.gz": "as gzip" };
    await using app = await serving({ "*": {} }, {}, { files: forms });
    assert.equal((await app.ask("/files/a.txt", "zstd")).text, "as zstd");
    await utimes(join(app.host.folder, "www/a.txt.zst"), 1e9, 1e9);
    assert.equal((await app.ask("/files/a.txt", "zstd, gzip;q=0.5")).text, "as gzip");
    assert.equal(zstdDecompressSync((await app.ask("/files/a.txt", "zstd")).bytes).toString(), long);
  });
});

describe("the option http_compress", () => {
  test("applies to the apps that it names, follows changes at once, and refuses unknown values", async () => {
    const app = (name: string) => ({
      name: `mod_${name}`,
      load: (module: Module) => module.provides("http", { route: { "GET /": () => ({ headers: plain, body: long }) } }),
    });
    const common = { modules_enabled: ["http", "http_compress", "one", "two"], http_compress: { one: {} } };
    await using server = await reconfigured(common, [app("one"), app("two")]);
    const codings = () =>
      Promise.all(
        ["one", "two"].map(async (name) => {
          const request = http.get({ port: server.port(), path: `/${name}/`, headers: { "Accept-Encoding": "gzip" } });
          const [response] = (await once(request, "response")) as [http.IncomingMessage];
          response.resume();
          if (response.headers["content-encoding"] === undefined) assert.equal(response.headers.vary, undefined);
          return response.headers["content-encoding"];
        }),
      );
    assert.deepEqual(await codings(), ["gzip", undefined]);
    await server.apply({ ...common, http_compress: { "*": {}, one: { encodings: [] } } });
    assert.deepEqual(await codings(), [undefined, "gzip"]);
    for (const wrong of [
      { encodings: ["deflate"] },
      { types: ["text"] },
      { except: ["account"] },
      { except: ["/a//b"] },
    ]) {
      await assert.rejects(server.apply({ ...common, http_compress: { two: wrong } }), /http_compress\.two/);
    }
    assert.deepEqual(await codings(), [undefined, "gzip"]);
    await server.apply({ ...common, http_compress: {} });
    assert.deepEqual(await codings(), [undefined, undefined]);
    assert.deepEqual(server.host.exports<HttpModule>("http").middleware(), [], "no middleware runs without an entry");
  });
});
