import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { MiddlewareFunction, Module } from "#core/types.ts";
import type { HttpGateway } from "#modules/mod_http_gateway/types.ts";
import { createNode } from "#node/index.ts";
import { startHost, type TestHost } from "#test/support/host.ts";
import { askAt } from "./support.ts";

describe("content that other modules serve", () => {
  let host: TestHost;
  const cids = { site: "", next: "" };
  const shown = { path: "" };
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    askAt(host.http, path, headers, method);

  before(async () => {
    host = await startHost({
      async prepare(folder) {
        await using node = await createNode({ repo: join(folder, "data", "repo"), offline: true });
        const files = [
          { path: "site/docs/index.html", content: "<p>docs</p>" },
          { path: "site/docs/a.css", content: "a {}" },
          { path: "site/docs/list/b.txt", content: "in b" },
          { path: "next/index.html", content: "<p>next</p>" },
        ];
        for await (const { path, cid } of node.addAll(files, { cidVersion: 1 })) {
          if (path === "site" || path === "next") cids[path] = String(cid);
        }
        shown.path = `/ipfs/${cids.site}/docs`;
      },
      config: {
        modules_enabled: ["http", "http_gateway", "http_guide", "http_koa"],
        https_ports: [],
        node_offline: true,
        // This setting only concerns paths that clients request; websites of modules are served in
        // any case.
        gateway_deserialized_responses: false,
      },
      modules: {
        http_guide(module: Module) {
          const gateway = module.depends<HttpGateway>("http_gateway");
          const handler = gateway.serve_cid(`/ipfs/${cids.site}/docs`);
          const moving = gateway.serve_cid(() => shown.path);
          module.provides("http", { route: { "GET /*": handler, "HEAD /*": handler, "GET /now/*": moving } });
        },
        http_koa(module: Module) {
          const gateway = module.depends<HttpGateway>("http_gateway");
          const other: MiddlewareFunction = (context) => void (context.body = `a ${context.method}`);
          module.provides("http", { middleware: [gateway.koa(`/ipfs/${cids.site}/docs`), other] });
        },
      },
    });
  });
  after(() => host?.stop());

  for (const app of ["guide", "koa"]) {
    test(`${app}: files, index, pages and conditions work as on the gateway, at the paths of the app`, async () => {
      const index = await ask(`/${app}/`);
      assert.deepEqual([index.status, index.body, index.headers["content-type"]], [200, "<p>docs</p>", "text/html"]);
      const css = await ask(`/${app}/a.css`);
      assert.deepEqual([css.body, css.headers["content-type"]], ["a {}", "text/css; charset=utf-8"]);
      assert.equal(css.headers["x-ipfs-path"], `/ipfs/${cids.site}/docs/a.css`);
      assert.equal((await ask(`/${app}/a.css`, { "if-none-match": css.headers.etag as string })).status, 304);
      assert.deepEqual([(await ask(`/${app}/a.css`, { range: "bytes=2-3" })).body], ["{}"]);
      const redirect = await ask(`/${app}/list`);
      assert.deepEqual([redirect.status, redirect.headers.location], [301, `/${app}/list/`]);
      const page = await ask(`/${app}/list/`);
      assert.ok(page.body.includes(`<a href="/${app}/list/b.txt">b.txt</a>`), page.body);
      const head = await ask(`/${app}/a.css`, {}, "HEAD");
      assert.deepEqual([head.status, head.headers["content-length"], head.body], [200, "4", ""]);
      assert.equal((await ask(`/${app}/absent`)).status, 404);
      assert.equal((await ask(`/${app}/../../ipfs/nonsense`)).status >= 400, true);
    });
  }

  test("a function may return another path for each request", async () => {
    assert.equal((await ask("/guide/now/")).body, "<p>docs</p>");
    shown.path = `/ipfs/${cids.next}`;
    assert.equal((await ask("/guide/now/")).body, "<p>next</p>");
  });

  test("other methods are passed on to the next middleware", async () => {
    assert.equal((await ask("/koa/a.css", {}, "POST")).body, "a POST");
  });

  test("an invalid content path is rejected when it is passed", async () => {
    const gateway = host.host.exports<HttpGateway>("http_gateway");
    for (const path of ["", "/docs", "/ipfs/", "/ipfs/nonsense", "ipfs/x"]) {
      assert.throws(() => gateway.serve_cid(path), { name: "HttpError", code: 400 }, path);
    }
  });
});
