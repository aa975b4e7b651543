/** The content type of every kind of response, with default headers, in every way of sending it. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, describe, test } from "node:test";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import type { Module, RouteTable } from "#core/types.ts";

const folder = await mkdtemp(join(tmpdir(), "modhost-types-"));
const www = join(folder, "www");
await mkdir(join(www, "sub"), { recursive: true });
for (const [name, text] of Object.entries({
  "a.html": "<p>hi",
  "a.html.gz": "gz",
  "b.css": "a{}",
  "c.bin": "01234567",
}))
  await writeFile(join(www, name), text);

const upstream = createServer(({ url }, response) => {
  if (url === "/typed") response.setHeader("Content-Type", "image/png");
  if (url === "/moved") response.writeHead(302, { Location: "/x", "Content-Length": "0" });
  if (url === "/gone") response.writeHead(304);
  if (url === "/reset") response.writeHead(205, { "Content-Length": "0" });
  response.end(url === "/typed" || url === "/bare" ? "body" : undefined);
});
await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
const { port } = upstream.address() as AddressInfo;

const DEFAULT = "text/x-default";
const JSON_TYPE = "application/json; charset=utf-8";
const file = join(www, "c.bin");

const route: RouteTable = {
  "GET /text": () => "text",
  "GET /stream": () => Readable.from(["text"]),
  "GET /spelled": ({ response }) => {
    response.headers["CONTENT-TYPE"] = "text/csv";
    return "a,b";
  },
  "GET /mixed": ({ response }) => {
    response.headers["content-Type"] = "text/csv";
    return "a,b";
  },
  "GET /twice": ({ response }) => {
    response.headers["CONTENT-TYPE"] = "text/plain";
    return { headers: { "Content-Type": "text/csv" }, body: "a,b" };
  },
  "GET /list": () => ({ headers: { content_type: [] }, body: "text" }),
  "GET /file": ({ response }) => response.send_file(file),
  "GET /typed-file": ({ response }) => {
    response.headers["Content-Type"] = "text/csv";
    return response.send_file(file);
  },
  "GET /empty": () => "",
  "GET /none": () => 204,
  "GET /reset": () => ({ status_code: 205, body: Readable.from([]) }),
  "GET /moved": () => ({ status_code: 302, headers: { location: "/x" } }),
  "GET /thrown": () => {
    throw new Error("by intent");
  },
  "WS /ws": () => 403,
};

const apps = [
  (module: Module) => {
    module.depends("http");
    module.provides("http", { name: "own", route });
  },
  (module: Module) => {
    module.depends("http");
    module.provides("http", {
      name: "koa",
      middleware: (context) => {
        if (context.path === "/json") context.body = { a: 1 };
        if (context.path === "/html") context.body = "<p>hi";
        if (context.path === "/stream") {
          context.type = "audio/wav";
          context.body = Readable.from(["sound"]);
        }
        if (context.path === "/moved") context.redirect("/x");
        if (context.path === "/none") context.status = 204;
        if (context.path === "/status") context.status = 202;
        if (context.path === "/gone") context.throw(410);
        if (context.path === "/bare") {
          context.body = Buffer.from("bytes");
          context.res.removeHeader("Content-Type");
        }
        if (context.path === "/sniffed") {
          context.set("X-Content-Type-Options", "own");
          context.body = "text";
        }
      },
    });
  },
];

/** A request, with the status and the content type of its response. */
type Row = readonly [path: string, status: number, type: string | undefined, headers?: Record<string, string>];

const rows: readonly Row[] = [
  ["/files/a.html", 200, "text/html; charset=utf-8"],
  ["/files/a.html", 200, "text/html; charset=utf-8", { accept_encoding: "gzip" }],
  ["/files/b.css", 200, "text/css; charset=utf-8"],
  ["/files/c.bin", 206, "application/octet-stream", { range: "bytes=0-1" }],
  ["/files/c.bin", 206, "multipart/byteranges", { range: "bytes=0-1,3-4" }],
  ["/files/c.bin", 416, undefined, { range: "bytes=90-" }],
  ["/files/c.bin", 304, undefined, { if_none_match: "*" }],
  ["/files/c.bin", 412, "text/plain; charset=utf-8", { if_match: '"other"' }],
  ["/files/sub", 301, undefined],
  ["/files/sub/", 200, "text/html; charset=utf-8", { accept: "text/html" }],
  ["/files/sub/", 200, JSON_TYPE, { accept: "application/json" }],
  ["/files/missing", 404, "text/plain; charset=utf-8"],
  ["/own/text", 200, DEFAULT],
  ["/own/stream", 200, DEFAULT],
  ["/own/spelled", 200, "text/csv"],
  ["/own/mixed", 200, "text/csv"],
  ["/own/twice", 200, "text/csv"],
  ["/own/list", 200, DEFAULT],
  ["/own/file", 200, DEFAULT],
  ["/own/file", 206, "multipart/byteranges", { range: "bytes=0-1,3-4" }],
  ["/own/file", 304, undefined, { if_none_match: "*" }],
  ["/own/file", 416, undefined, { range: "bytes=90-" }],
  ["/own/typed-file", 200, "text/csv"],
  ["/own/typed-file", 206, "multipart/byteranges", { range: "bytes=0-1,3-4" }],
  ["/own/empty", 200, undefined],
  ["/own/none", 204, undefined],
  ["/own/reset", 205, undefined],
  ["/own/moved", 302, undefined],
  ["/own/thrown", 500, "text/plain; charset=utf-8"],
  ["/own/ws", 403, "text/plain; charset=utf-8", upgrade()],
  ["/koa/json", 200, JSON_TYPE],
  ["/koa/html", 200, "text/html; charset=utf-8"],
  ["/koa/stream", 200, "audio/wav"],
  ["/koa/moved", 302, "text/html; charset=utf-8", { accept: "text/html" }],
  ["/koa/none", 204, undefined],
  ["/koa/status", 202, "text/plain; charset=utf-8"],
  ["/koa/gone", 410, "text/plain; charset=utf-8"],
  ["/koa/bare", 200, DEFAULT],
  ["/up/typed", 200, "image/png"],
  ["/up/bare", 200, DEFAULT],
  ["/up/moved", 302, undefined],
  ["/up/gone", 304, undefined],
  ["/up/reset", 205, undefined],
  ["/nowhere", 404, "text/plain; charset=utf-8"],
];

function upgrade(): Record<string, string> {
  return {
    connection: "upgrade",
    upgrade: "websocket",
    sec_websocket_version: "13",
    sec_websocket_key: btoa("0123456789abcdef"),
  };
}

const passing = (module: Module) => {
  module.provides("http-middleware", { middleware: (_context, next) => next() });
};

const ways: Readonly<Record<string, { readonly config?: Record<string, unknown>; readonly before?: boolean }>> = {
  "nothing before the apps": {},
  "a middleware before them that does nothing": { before: true },
  compression: { config: { http_compress: { "*": { min_size: 0 } } } },
  "a guard": { config: { http_guard: { "*": { rate: "100000/s" } } } },
};

async function hostBy({ config, before }: (typeof ways)[string], defaults: unknown): Promise<TestHost> {
  const modules = [
    ...apps.map((load, at) => ({ name: `app_${at}`, load })),
    ...(before ? [{ name: "before", load: passing }] : []),
  ];
  return createTestHost({
    listen: false,
    modules,
    config: {
      modules_enabled: ["http", "http_files", "http_dir_listing", "http_compress", "http_guard", "http_proxy"],
      http_files_dir: www,
      http_dir_listing: true,
      http_proxy: { up: { upstreams: [`http://127.0.0.1:${port}`] } },
      http_default_headers: defaults,
      ...config,
    },
  });
}

after(async () => {
  upstream.close();
  upstream.closeAllConnections();
  await rm(folder, { recursive: true });
});

for (const [name, way] of Object.entries(ways)) {
  describe(`behind ${name}`, () => {
    test("every response keeps its own type, and only a body without one gets the default", async () => {
      await using host = await hostBy(way, { content_type: DEFAULT, x_content_type_options: "nosniff" });
      for (const [path, status, type, headers = {}] of rows) {
        for (const method of ["GET", "HEAD"]) {
          // Ranges and websockets are requested by GET.
          if (method === "HEAD" && (status === 206 || status === 416 || "upgrade" in headers)) continue;
          const reply = await host.inject({ path, method, headers });
          const { "content-type": seen, "x-content-type-options": sniffing } = reply.headers;
          const label = `${method} ${path} ${JSON.stringify(headers)}`;
          assert.deepEqual([reply.status, String(seen).split("; boundary")[0]], [status, String(type)], label);
          assert.equal(sniffing, "nosniff", label);
        }
      }
      assert.equal((await host.inject("/koa/sniffed")).headers["x-content-type-options"], "own");
    });

    test("an app removes a default for itself, whichever app responds before it", async () => {
      const own = { x_content_type_options: "", content_type: "" };
      await using host = await hostBy(way, { x_content_type_options: "nosniff", content_type: DEFAULT, own, koa: own });
      for (const path of ["/own/text", "/koa/bare", "/koa/json"]) {
        const { headers } = await host.inject(path);
        assert.equal(headers["x-content-type-options"], undefined, path);
        assert.notEqual(headers["content-type"], DEFAULT, path);
      }
    });

    test("only routes whose responses really have no type cause a warning", async () => {
      await using host = await hostBy(way, undefined);
      for (const [path, , , headers = {}] of rows) await host.inject({ path, headers });
      const routes = host
        .logged("warn")
        .filter(({ msg }) => msg.includes("content type"))
        .map(({ msg }) => msg.split(" responds")[0]);
      assert.deepEqual(routes, ["GET /own/text", "GET /own/stream", "GET /own/list"]);
    });
  });
}
