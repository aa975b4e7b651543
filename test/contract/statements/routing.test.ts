/**
 * Part 4 of the specification and the related decisions: which handler runs, and the response if
 * none does.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpEvent, HttpProvider, Module } from "#core/types.ts";
import { withHost } from "#test/support/host.ts";
import { rawExchange } from "#test/support/raw.ts";
import { overEach } from "#test/support/transports.ts";

const provide =
  (route: HttpProvider["route"], more: Omit<HttpProvider, "route"> = {}) =>
  (module: Module) => {
    module.depends("http");
    module.provides("http", { route, ...more });
  };

/** The events with which a handler was called. */
const events = new Set<HttpEvent>();

const host = withHost({
  modules: {
    mod_http_order: provide({
      "GET /*": (_event, path) => `short ${path}`,
      "GET /a/*": (_event, path) => `middle ${path}`,
      "GET /a/b/*": (_event, path) => (path === "skip" ? undefined : `long ${path}`),
      "GET /a/b/c": () => "exact",
      "GET /a/b/d": () => undefined,
    }),
    mod_http_reversed: provide({ "GET /x": () => "exact", "GET /x/*": () => "wildcard" }),
    mod_http_shape(module: Module) {
      module.depends("http");
      module.provides("http", {
        route: {
          GET(...called) {
            events.add(called[0]);
            return `${called.length} ${called[1]} of ${called[0].request.path}`;
          },
          "GET /events": () => String(events.size),
          "GET /w/*": (...called) => `${called.length} ${called[1]} of ${called[0].request.path}`,
        },
      });
    },
    mod_http_bare: provide({ GET: () => "bare" }),
    mod_http_slash: provide({
      "GET /": () => "slash",
      "GET /a/": () => "a slash",
      "GET /b/": () => "b slash",
      "GET /b": () => "b",
    }),
    mod_http_both: provide({ GET: () => "bare", "GET /": () => "slash" }),
    mod_http_verbs: provide({
      "GET /r": ({ request }) => `got ${request.method}`,
      "POST /r": () => "posted",
      "PUT /w/*": () => "put",
      "GET /own": () => "own",
      "OPTIONS /own": () => "own options",
      "HEAD /headed": ({ response }) => {
        response.headers.x_by = "head";
        return "";
      },
      "GET /headed": () => "by get",
      "POST /only": () => "posted",
    }),
    low: provide({ "GET /x": () => "low", "GET /low": () => "low" }, { name: "shared", priority: -1 }),
    early: provide({ "GET /x": () => "early", "GET /same": () => "early" }, { name: "shared", priority: 1 }),
    late: provide({ "GET /x": () => "late", "GET /same": () => "late" }, { name: "shared", priority: 1 }),
    mod_http_moved: provide({ GET: () => "moved", "GET /w/*": (_event, path) => path }, { default_path: "/far/away/" }),
    mod_http_configured: provide({ GET: () => "configured" }, { default_path: "/not/here" }),
    mod_http_cors: provide(
      { "GET /r": () => "r", "POST /r": () => "p", "GET /fail": () => 403 },
      { cors: { enabled: true, origins: ["https://good.example"], credentials: true, headers: { "X-Extra": true } } },
    ),
    mod_http_open: provide({ GET: () => "open" }, { cors: { enabled: true } }),
  },
  config: { http_paths: { configured: "/conf/" } },
});

overEach(host, "C4.2 a handler is called with the event", async (client) => {
  assert.match(await client.text("/shape"), /^\d undefined of \/shape$/);
});

overEach(
  host,
  "C4.3 a wildcard handler is called with the event and the path that matched the wildcard",
  async (client) => {
    assert.equal(await client.text("/shape/w/some/where"), "2 some/where of /shape/w/some/where");
  },
);

overEach(host, "C4.4 the wildcard path has the app base path removed, unlike request.path", async (client) => {
  assert.equal(await client.text("/order/x/y"), "short x/y");
  assert.equal(await client.text("/far/away/w/x"), "x");
});

overEach(host, "C4.10 a non-wildcard route takes priority over wildcard routes", async (client) => {
  assert.equal(await client.text("/order/a/b/c"), "exact");
  assert.equal(await client.text("/reversed/x"), "exact");
  assert.equal(await client.text("/reversed/x/y"), "wildcard");
});

overEach(host, "C6.1 each matching request invokes a handler with an event of its own", async (client) => {
  const before = Number(await client.text("/shape/events"));
  for (let n = 0; n < 3; n++) await client.text("/shape");
  assert.equal(await client.text("/shape/events"), String(before + 3));
});

overEach(host, "D37 an unmatched path is a 404", async (client) => {
  for (const path of ["/", "/nobody", "/verbs/none", "/verbs/r/x", "/*"]) {
    const reply = await client.request(path);
    assert.equal(reply.status, 404, path);
    assert.match(reply.text, /404/);
  }
});

overEach(host, "D38 the longer wildcard runs before the shorter", async (client) => {
  assert.equal(await client.text("/order/a/b/x"), "long x");
  assert.equal(await client.text("/order/a/x"), "middle x");
  assert.equal(await client.text("/order/x"), "short x");
  assert.equal(await client.text("/order/a/b/skip"), "middle b/skip");
  assert.equal(await client.text("/order/a/b/d"), "long d");
  assert.equal(await client.text("/order/a/b/"), "long ");
  assert.equal(await client.text("/order"), "short ");
});

overEach(host, "D39 among equal routes the priority decides, then the order of loading", async (client) => {
  assert.equal(await client.text("/shared/x"), "early");
  assert.equal(await client.text("/shared/same"), "early");
  assert.equal(await client.text("/shared/low"), "low");
});

overEach(host, "D40 a path without the final slash of its route is redirected, keeping the query", async (client) => {
  assert.equal(await client.text("/slash/"), "slash");
  assert.equal(await client.text("/slash/a/"), "a slash");
  for (const [path, location] of [
    ["/slash", "/slash/"],
    ["/slash?a=%20b", "/slash/?a=%20b"],
    ["/slash/a", "/slash/a/"],
  ] as const) {
    const reply = await client.request(path);
    assert.deepEqual([reply.status, reply.header("location"), reply.text], [301, location, ""], path);
  }
  assert.equal(await client.text("/slash/b"), "b");
  assert.equal(await client.text("/slash/b/"), "b slash");
});

overEach(host, "D41 the key METHOD serves the base without a slash only", async (client) => {
  assert.equal(await client.text("/bare"), "bare");
  assert.equal(await client.status("/bare/"), 404);
  assert.equal(await client.text("/both"), "bare");
  assert.equal(await client.text("/both/"), "slash");
});

overEach(host, "D42 a method that the path has no route for is a 405 that lists those it has", async (client) => {
  const reply = await client.request({ method: "DELETE", path: "/verbs/r" });
  assert.equal(reply.status, 405);
  assert.match(reply.text, /405/);
  assert.deepEqual(methodsOf(reply.header("allow")), ["GET", "HEAD", "OPTIONS", "POST"]);
  assert.deepEqual(methodsOf((await client.request("/verbs/w/x")).header("allow")), ["OPTIONS", "PUT"]);
  assert.equal(await client.status({ method: "DELETE", path: "/verbs/none" }), 404);
});

overEach(host, "D43 HEAD falls back to GET, with the same headers and no body", async (client) => {
  const reply = await client.request({ method: "HEAD", path: "/verbs/r" });
  assert.deepEqual([reply.status, reply.text, reply.header("content-length")], [200, "", "8"]);
  const headed = await client.request({ method: "HEAD", path: "/verbs/headed" });
  assert.equal(headed.header("x-by"), "head");
  assert.equal(await client.text("/verbs/headed"), "by get");
  assert.equal(await client.status({ method: "HEAD", path: "/verbs/only" }), 405);
  const missing = await client.request({ method: "HEAD", path: "/verbs/none" });
  assert.deepEqual([missing.status, missing.text], [404, ""]);
});

overEach(host, "D44 OPTIONS on a routed path lists the methods", async (client) => {
  const reply = await client.request({ method: "OPTIONS", path: "/verbs/r" });
  assert.deepEqual([reply.status, reply.text], [200, ""]);
  assert.deepEqual(methodsOf(reply.header("allow")), ["GET", "HEAD", "OPTIONS", "POST"]);
  assert.equal(await client.text({ method: "OPTIONS", path: "/verbs/own" }), "own options");
  assert.equal(await client.status({ method: "OPTIONS", path: "/verbs/none" }), 404);
});

overEach(host, "D45 an app may move by default_path, and the option http_paths goes before it", async (client) => {
  assert.equal(await client.text("/far/away"), "moved");
  assert.equal(await client.text("/conf"), "configured");
  for (const path of ["/moved", "/configured", "/not/here"]) assert.equal(await client.status(path), 404, path);
});

overEach(host, "D46 CORS is off by default", async (client) => {
  const headers = { origin: "https://good.example", "access-control-request-method": "GET" };
  for (const method of ["GET", "OPTIONS"]) {
    const reply = await client.request({ method, path: "/verbs/r", headers });
    assert.equal(reply.status, 200);
    assert.deepEqual(
      reply.lines.filter(([name]) => /^access-control-/i.test(name)),
      [],
    );
  }
});

overEach(host, "D47 a provider may switch CORS on for its app", async (client) => {
  const good = { origin: "https://good.example" };
  const reply = await client.request({ path: "/cors/r", headers: good });
  assert.equal(reply.header("access-control-allow-origin"), "https://good.example");
  assert.equal(reply.header("access-control-allow-credentials"), "true");
  assert.match(reply.header("vary") ?? "", /origin/i);
  const failed = await client.request({ path: "/cors/fail", headers: good });
  assert.deepEqual([failed.status, failed.header("access-control-allow-origin")], [403, "https://good.example"]);
  const other = await client.request({ path: "/cors/r", headers: { origin: "https://evil.example" } });
  assert.deepEqual([other.status, other.header("access-control-allow-origin")], [200, undefined]);
  const preflight = await client.request({
    method: "OPTIONS",
    path: "/cors/r",
    headers: { ...good, "access-control-request-method": "POST", "access-control-request-headers": "x-extra" },
  });
  assert.ok(preflight.status === 204 || preflight.status === 200);
  assert.deepEqual(methodsOf(preflight.header("access-control-allow-methods")), ["GET", "HEAD", "OPTIONS", "POST"]);
  assert.match(preflight.header("access-control-allow-headers") ?? "", /content-type.*x-extra/i);
  const open = await client.request({ path: "/open", headers: { origin: "https://any.example" } });
  assert.match(open.header("access-control-allow-origin") ?? "", /^(\*|https:\/\/any\.example)$/);
});

describe("with CORS on by configuration", () => {
  const lenient = withHost({
    config: { http_default_cors_enabled: true },
    modules: {
      mod_http_plain: provide({ GET: () => "plain" }),
      mod_http_closed: provide({ GET: () => "closed" }, { cors: { enabled: false } }),
    },
  });

  overEach(
    lenient,
    "D48 the option http_default_cors_enabled switches CORS on, and a provider off again",
    async (client) => {
      const headers = { origin: "https://any.example" };
      assert.ok((await client.request({ path: "/plain", headers })).header("access-control-allow-origin"));
      assert.equal(
        (await client.request({ path: "/closed", headers })).header("access-control-allow-origin"),
        undefined,
      );
    },
  );
});

describe("with virtual hosts", () => {
  const app: HttpProvider["route"] = { GET: ({ request }) => request.host };
  const virtual = withHost({
    config: { hosts: { "one.example": { modules_enabled: ["http_site"] }, "two.example": {} } },
    modules: { mod_http_everywhere: provide(app) },
    plugins: {
      mod_http_site: `export default (module) => {
      module.depends("http");
      module.provides("http", { route: { GET: ({ request }) => \`site of \${request.host}\` } });
    };`,
    },
  });

  overEach(
    virtual,
    "D49 with hosts an app is served where it is enabled and an unknown host is a 404",
    async (client) => {
      const at = (host: string, path: string) => ({ path, headers: { host } });
      assert.equal(await client.text(at("one.example", "/site")), "site of one.example");
      assert.equal(await client.text(at("ONE.example.:5280", "/site")), "site of one.example");
      assert.equal(await client.status(at("two.example", "/site")), 404);
      assert.equal(await client.text(at("two.example", "/everywhere")), "two.example");
      assert.equal(await client.status(at("three.example", "/everywhere")), 404);
    },
  );
});

describe("with virtual hosts and a default one", () => {
  const lenient = withHost({
    config: { hosts: { "one.example": {}, "two.example": {} }, http_default_host: "two.example" },
    modules: { mod_http_where: provide({ GET: ({ request }) => request.host }) },
  });

  overEach(lenient, "D50 the option http_default_host serves unknown hosts", async (client) => {
    const at = (name: string) => client.text({ path: "/where", headers: { host: name } });
    assert.deepEqual([await at("one.example"), await at("three.example")], ["one.example", "two.example"]);
  });
});

overEach(host, "D51 without hosts any Host is served", async (client) => {
  for (const name of ["localhost", "any.example:99", "[::1]"]) {
    assert.equal(await client.text({ path: "/bare", headers: { host: name } }), "bare");
  }
});

test("D52 HTTP/1.1 without Host is a 400", async () => {
  for (const [port, tls] of [
    [host().http, false],
    [host().https, true],
  ] as const) {
    const response = await rawExchange(port, "GET /bare HTTP/1.1\r\nConnection: close\r\n\r\n", { tls });
    assert.match(response, /^HTTP\/1\.1 400 /);
  }
});

function methodsOf(header: string | undefined): string[] {
  return (header ?? "").split(/\s*,\s*/).sort();
}
