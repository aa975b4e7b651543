import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { test } from "node:test";
import type { HttpModule } from "#core/http/index.ts";
import type { Handler, Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

async function ask(port: number, host: string, path = "/x"): Promise<[number, string]> {
  const requested = request({ port, path, headers: { host, connection: "close" } }).end();
  const [response] = await once(requested, "response");
  let body = "";
  for await (const piece of response.setEncoding("utf8")) body += piece;
  return [response.statusCode, body];
}

test("an app claims requests by their host before all routes, after the middleware, and leaves the others", async () => {
  const seen: string[] = [];
  const own: Handler = ({ request: { path } }, rest) => `own ${path} ${rest}`;
  await using host = await startHost({
    config: {
      hosts: { "www.example.org": {} },
      modules_enabled: ["http", "http_wide", "http_other", "http_seen"],
      https_ports: [],
    },
    modules: {
      http_wide: Object.assign(
        (module: Module) => {
          module.provides("http", {
            route: {},
            claims({ url, headers }) {
              const name = url.host ?? headers.host;
              if (name === "fails.example") throw new Error("claims fail");
              if (name === "late.example") return Promise.resolve(own);
              if (name === "nobody.example") return Promise.resolve(undefined);
              return name?.endsWith(".wide.example") ? own : undefined;
            },
          });
        },
        { global: true },
      ),
      http_other: (module: Module) => module.provides("http", { default_path: "/", route: { "GET /x": "other" } }),
      http_seen: (module: Module) => {
        module.provides("http-middleware", {
          middleware(context, next) {
            seen.push(context.host);
            return next();
          },
        });
      },
    },
    inMain: ["http_wide"],
  });
  assert.deepEqual(await ask(host.http, "any.wide.example", "/x"), [200, "own /x x"]);
  assert.deepEqual(await ask(host.http, "late.example", "/a%20b/"), [200, "own /a b/ a b/"]);
  assert.deepEqual(await ask(host.http, "www.example.org"), [200, "other"]);
  assert.equal((await ask(host.http, "nobody.example"))[0], 404);
  assert.equal((await ask(host.http, "strange.example"))[0], 404);
  assert.equal((await ask(host.http, "fails.example"))[0], 500);
  assert.equal((await ask(host.http, "any.wide.example", "/../x"))[0], 400);
  assert.ok(seen.includes("any.wide.example"));
  const { explain } = host.host.exports<HttpModule>("http");
  const claimants = [{ app: "wide", module: "http_wide" }];
  for (const [name, status] of [
    ["www.example.org", 404],
    ["any.wide.example", 404],
  ] as const) {
    const explained = explain("GET", "/x", name);
    assert.deepEqual([explained.claimants, explained.status], [claimants, status]);
  }
});
