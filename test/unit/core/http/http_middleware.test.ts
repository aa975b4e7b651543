/** Koa middleware before the apps of the host: packages from npm and our own, over the RPC, files and a module. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, describe, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import compress from "koa-compress";
import { event_stream, type HttpModule } from "#core/http/index.ts";
import { assertNothingLeft } from "#core/testing/index.ts";
import type { HttpFinishedEvent, MiddlewareFunction, Module, PooledBody } from "#core/types.ts";
import { serving, startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";
import { SocketClient } from "#test/support/websocket.ts";

const long = "a line of text that can be packed well\n".repeat(2000);
const noise = randomBytes(200_000).toString("base64");

/** A middleware of one's own, as a file: counts what it saw, and says what the answer was. */
const stamp = `export default ({ mark }) => async (context, next) => {
  await next();
  context.set("X-Stamp", [mark, context.status, context.path].join(" "));
};`;

/** A limiter needs a place to count in, which no configuration can give. */
const limits = `import ratelimit from ${JSON.stringify(import.meta.resolve("koa-ratelimit"))};
export default (options) => ratelimit({ driver: "memory", db: new Map(), ...options });`;

const hello = `export default (module) => {
  module.depends("http");
  module.provides("http", {
    route: {
      "GET /": (event) => { event.response.headers.content_type = "text/plain"; return "hello"; },
      "GET /limited": () => "one of few",
      "GET /long": (event) => {
        event.response.headers.content_type = "text/plain";
        event.response.headers.etag = '"plain"';
        return ${JSON.stringify(long.slice(0, 78))}.repeat(1000);
      },
      "GET /broken": () => { throw new Error("broken on purpose"); },
    },
  });
};`;

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

  test("is listed by what explains a request, the outermost first, and only before its apps", () => {
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
      const asked = { "Accept-Encoding": "gzip, br" };
      const whole = await client.request("/files/noise.txt");
      const etag = whole.header("etag") as string;
      assert.deepEqual([whole.text, whole.header("content-length")], [noise, String(noise.length)]);
      const part = await client.request({ path: "/files/noise.txt", headers: { ...asked, Range: "bytes=10-19" } });
      assert.deepEqual([part.status, part.text], [206, noise.slice(10, 20)]);
      assert.equal(part.header("content-range"), `bytes 10-19/${noise.length}`);
      const several = await client.request({ path: "/files/noise.txt", headers: { Range: "bytes=0-1,5-6" } });
      assert.deepEqual([several.status, several.header("content-length")], [206, String(several.bytes.length)]);
      const known = await client.request({ path: "/files/noise.txt", headers: { ...asked, "If-None-Match": etag } });
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
      assert.equal(packed.header("content-encoding"), "gzip");
      assert.equal(gunzipSync(packed.bytes).toString(), noise);
    },
  );

  test("refuses by its own answer, which the middleware outside of it still sees", async () => {
    const client = host.client("HTTP/1.1");
    let last = await client.request("/hello/limited");
    for (let tries = 0; tries < 20 && last.status === 200; tries += 1) last = await client.request("/hello/limited");
    assert.equal(last.status, 429);
    assert.match(last.text, /^Rate limit exceeded/);
    assert.equal(last.header("x-stamp"), "own 429 /hello/limited");
    assert.equal(await client.status("/files/long.txt"), 200, "other apps are not limited");
  });

  test("is measured", () => {
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

describe('provides("http-middleware")', () => {
  const guarding = (version: string) => `import compress from ${JSON.stringify(import.meta.resolve("koa-compress"))};
    import helmet from ${JSON.stringify(import.meta.resolve("koa-helmet"))};
    export default (module) => {
      module.provides("http-middleware", { middleware: [helmet(), compress({ threshold: 10 })], name: "guard" });
      module.provides("http-middleware", {
        apps: ["hello"],
        order: 5,
        middleware: async function versioned(context, next) {
          await globalThis.gate?.(context);
          await next();
          context.set("X-Version", "${version}");
        },
      });
    };`;

  test("is live with its module, exchanged by a reload, and gone after unload", async () => {
    await using host = await startHost({
      plugins: { mod_hello: hello, mod_guard: guarding("one") },
      config: { modules_enabled: ["http", "hello", "guard"] },
    });
    const http = host.host.exports<HttpModule>("http");
    const client = host.client("HTTP/1.1");
    const seen = async () => {
      const reply = await client.request({ path: "/hello/long", headers: { "Accept-Encoding": "gzip" } });
      return [
        reply.status,
        reply.header("x-version"),
        reply.header("x-frame-options"),
        reply.header("content-encoding"),
      ];
    };
    assert.deepEqual(await seen(), [200, "one", "SAMEORIGIN", "gzip"]);
    const names = () => http.explain("GET", "/hello").middleware.map(({ name, module }) => `${module} ${name}`);
    assert.deepEqual(names(), ["guard guard", "guard versioned"]);
    await writeFile(join(host.folder, "plugins", "mod_guard.js"), guarding("two"));
    await host.host.reload("guard");
    assert.deepEqual(await seen(), [200, "two", "SAMEORIGIN", "gzip"]);
    assert.deepEqual(names(), ["guard guard", "guard versioned"]);
    await host.host.unload("guard");
    assertNothingLeft(host.host, "guard");
    assert.deepEqual(await seen(), [200, undefined, undefined, undefined]);
    assert.deepEqual(names(), []);
  });

  test("its unload waits for the requests that are within it", async () => {
    const entered = new PassThrough();
    let open: (() => void) | undefined;
    Object.assign(globalThis, {
      gate: () => {
        entered.emit("in");
        return new Promise<void>((resolve) => {
          open = resolve;
        });
      },
    });
    try {
      await using host = await startHost({
        plugins: { mod_hello: hello, mod_guard: guarding("one") },
        config: { modules_enabled: ["http", "hello", "guard"] },
      });
      const client = host.client("HTTP/1.1");
      const inside = once(entered, "in");
      const inFlight = client.request("/hello/");
      await inside;
      const unload = host.host.unload("guard");
      const later = await host.client("HTTP/1.1").request("/hello/");
      assert.deepEqual([later.status, later.header("x-version")], [200, undefined], "new requests do without it");
      open?.();
      assert.equal((await inFlight).header("x-version"), "one");
      await unload;
    } finally {
      Reflect.deleteProperty(globalThis, "gate");
    }
  });

  const before = (middleware: MiddlewareFunction) => (module: Module) =>
    module.provides("http-middleware", { middleware });

  test("what it throws is answered by the error pages, under its module in the log", async () => {
    await using host = await startHost({
      modules: {
        mod_hello: serving({ route: { "GET /": () => "hello" } }),
        mod_throws: before((context) => {
          if (context.path === "/hello/x") context.throw(418, "no tea");
          throw new Error("broken in middleware");
        }),
      },
      config: { modules_enabled: ["http_errors"] },
    });
    const client = host.client("HTTP/1.1");
    const broken = await client.request("/hello/");
    assert.equal(broken.status, 500);
    assert.doesNotMatch(broken.text, /broken in middleware/);
    assert.match(host.log(), /"module":"throws".*broken in middleware/);
    const refused = await client.request("/hello/x");
    assert.deepEqual([refused.status, /no tea/.test(refused.text)], [418, true]);
  });

  test("may answer for the apps, and change what they answered", async () => {
    const finished: HttpFinishedEvent[] = [];
    await using host = await startHost({
      modules: {
        mod_hello: serving({ route: { "GET /": () => "hello", "GET /json": () => ({ body: '{"a":1}' }) } }),
        mod_seen: (module) => module.hook("http-finished", (event) => void finished.push(event)),
        mod_changes: before(async (context, next) => {
          if (context.path === "/hello/closed") {
            context.body = { closed: true };
            return;
          }
          await next();
          if (context.status === 200) context.body = `${context.body}!`;
        }),
      },
    });
    const client = host.client("HTTP/1.1");
    assert.equal(await client.text("/hello/"), "hello!");
    assert.equal(await client.text("/hello/json"), '{"a":1}!');
    assert.deepEqual(await client.json("/hello/closed"), { closed: true });
    assert.deepEqual(finished.map(({ bytes, complete }) => [bytes, complete])[0], [6, true]);
  });

  test("sees bodies that come in pieces, which go back to their owner unspoilt, packed or not", async () => {
    const pieces = 20;
    let back = 0;
    const lent = (): PooledBody => ({
      async *[Symbol.asyncIterator]() {
        const buffer = Buffer.alloc(50_000);
        for (let at = 0; at < pieces; at += 1) {
          const isFree = back % pieces === at % pieces;
          const piece = isFree ? buffer : Buffer.alloc(50_000);
          yield piece.fill(`piece ${at} `);
        }
      },
      release(piece) {
        piece.fill(0xff);
        back += 1;
      },
    });
    await using host = await startHost({
      modules: {
        mod_lent: serving({ route: { "GET /": () => ({ headers: { content_type: "text/plain" }, body: lent() }) } }),
        mod_packs: before(compress()),
      },
    });
    const whole = Array.from({ length: pieces }, (_, at) => Buffer.alloc(50_000, `piece ${at} `).toString()).join("");
    const client = host.client("HTTP/1.1");
    assert.equal(await client.text("/lent/"), whole);
    assert.equal(back, pieces);
    const packed = await client.request({ path: "/lent/", headers: { "Accept-Encoding": "gzip" } });
    assert.equal(gunzipSync(packed.bytes).toString(), whole);
    assert.equal(back, 2 * pieces);
  });

  test("does not hold back server-sent events, however it packs", async () => {
    await using host = await startHost({
      modules: {
        mod_news: serving({
          route: {
            "GET /": (event) => {
              void event_stream(event).send("at once");
              return true;
            },
          },
        }),
        mod_packs: before(compress({ threshold: 0 })),
      },
    });
    const answer = await fetch(`http://127.0.0.1:${host.http}/news/`, { headers: { "Accept-Encoding": "gzip" } });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const { value } = await reader.read();
    assert.match(Buffer.from(value ?? []).toString(), /^data: ?at once/);
    assert.equal(answer.headers.get("content-encoding"), null);
    await reader.cancel();
  });

  test("stands before websockets: it may refuse them, and its headers go along with the switch", async () => {
    await using host = await startHost({
      modules: {
        mod_chat: serving({
          route: {
            "WS /": async (event) => {
              const socket = event.accept();
              for await (const message of socket) await socket.send(message);
            },
          },
        }),
        mod_door: before(async (context, next) => {
          if (context.get("X-Key") !== "open") context.throw(401);
          context.set("X-Door", "passed");
          await next();
        }),
      },
    });
    const url = `http://127.0.0.1:${host.http}/chat`;
    await assert.rejects(SocketClient.open(url), /401/);
    using client = await SocketClient.open(url, { headers: { "X-Key": "open" } });
    client.send("there?");
    assert.equal(await client.next(), "there?");
  });

  test("of the wrong form is refused with the module that gave it", async () => {
    await using host = await startHost({
      modules: {
        mod_wrong: (module) => module.provides("http-middleware", { middleware: "koa" as never }),
        mod_hello: serving({ route: { "GET /": () => "hello" } }),
      },
    });
    assert.match(
      host.host.modules().find(({ name }) => name === "wrong")?.note ?? "",
      /middleware is a Koa middleware/,
    );
    assert.equal(await host.client("HTTP/1.1").text("/hello/"), "hello");
  });
});
