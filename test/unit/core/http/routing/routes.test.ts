import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { basesOf } from "#core/http/message/paths.ts";
import { AppMount } from "#core/http/routing/mount.ts";
import { RouteTable } from "#core/http/routing/routes.ts";
import type { HttpProvider, Module } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

function mount(
  name: string,
  base: string,
  keys: readonly string[],
  extra: Partial<HttpProvider> = {},
  host = "*",
): AppMount {
  const route = Object.fromEntries(keys.map((key) => [key, () => key]));
  return new AppMount({ name, base, host, owner: { name } as Module, provider: { route, ...extra }, cors: undefined });
}

function table(...mounts: AppMount[]): RouteTable {
  return new RouteTable(mounts);
}

/** Returns the candidates of a request as "app path kind argument". */
function tried(routes: RouteTable, method: string, path: string, host = "*"): string[] | undefined {
  return routes
    .resolve(host, method, path)
    ?.candidates.map(
      ({ route, argument }) => `${route.app} ${route.path}${argument === undefined ? "" : ` (${argument})`}`,
    );
}

describe("the route table", () => {
  test("an exact route comes first, then longer wildcards before shorter ones", () => {
    const routes = table(mount("a", "/a", ["GET /*", "GET /x/*", "GET /x/y"]));
    assert.deepEqual(tried(routes, "GET", "/a/x/y"), ["a /a/x/y", "a /a/x/* (y)", "a /a/* (x/y)"]);
  });

  test("a wildcard serves the path itself, with an empty argument", () => {
    const routes = table(mount("a", "/a", ["GET /x/*"]));
    assert.deepEqual(tried(routes, "GET", "/a/x"), ["a /a/x/* ()"]);
    assert.deepEqual(tried(routes, "GET", "/a/x/"), ["a /a/x/* ()"]);
    assert.deepEqual(tried(routes, "GET", "/a/xy"), []);
  });

  test("characters with a meaning in patterns are literal", () => {
    const routes = table(
      mount("a", "/a", ["GET /(", "GET /:id", "GET /{z}", "GET /a.b", "GET /q?x=1", "GET /*star", "GET /[x]+"]),
    );
    for (const path of ["/(", "/:id", "/{z}", "/a.b", "/*star", "/[x]+"])
      assert.equal(tried(routes, "GET", `/a${path}`)?.length, 1, path);
    assert.deepEqual(tried(routes, "GET", "/a/q%3Fx=1"), ["a /a/q?x=1"]);
    for (const path of ["/5", "/axb", "/z", "/x"]) assert.deepEqual(tried(routes, "GET", `/a${path}`), [], path);
  });

  test("matching respects case and final slashes", () => {
    const routes = table(mount("a", "/a", ["GET /x"]));
    for (const path of ["/a/X", "/A/x", "/a/x/"]) assert.deepEqual(tried(routes, "GET", path), [], path);
  });

  test("apps on nested bases are tried by the same order", () => {
    const routes = table(
      mount("root", "", ["GET /*", "GET /"]),
      mount("deep", "/a/b", ["GET /*"]),
      mount("mid", "/a", ["GET /*"]),
    );
    assert.deepEqual(tried(routes, "GET", "/a/b/c"), ["deep /a/b/* (c)", "mid /a/* (b/c)", "root /* (a/b/c)"]);
    assert.deepEqual(tried(routes, "GET", "/"), ["root /", "root /* ()"]);
  });

  test("equal routes go by priority, then by order of loading", () => {
    const routes = table(
      mount("one", "/a", ["GET /x"]),
      mount("two", "/a", ["GET /x"], { priority: 1 }),
      mount("three", "/a", ["GET /x"]),
    );
    assert.deepEqual(tried(routes, "GET", "/a/x"), ["two /a/x", "one /a/x", "three /a/x"]);
  });

  test("HEAD tries HEAD routes before GET routes", () => {
    const routes = table(mount("a", "/a", ["GET /x", "HEAD /*"]));
    assert.deepEqual(tried(routes, "HEAD", "/a/x"), ["a /a/* (x)", "a /a/x"]);
    assert.deepEqual(tried(routes, "GET", "/a/x"), ["a /a/x"]);
  });

  test("a route with a final slash redirects from the path without it, after exact routes and before wildcards", () => {
    const routes = table(mount("a", "/a", ["GET /", "GET /x/", "GET /*"]));
    assert.deepEqual(
      routes.resolve("*", "GET", "/a/x")?.candidates.map(({ route }) => route.kind),
      ["redirect", "wildcard"],
    );
    assert.deepEqual(
      routes.resolve("*", "GET", "/a/x/")?.candidates.map(({ route }) => route.kind),
      ["exact", "wildcard"],
    );
  });

  test("the methods of a path are known, whatever the requested method", () => {
    const routes = table(mount("a", "/a", ["GET /x", "POST /*"]));
    assert.deepEqual(routes.resolve("*", "PUT", "/a/x")?.allowed, ["GET", "HEAD", "POST"]);
    assert.deepEqual(routes.resolve("*", "PUT", "/b")?.allowed, []);
  });

  test("routes of the whole server are tried before those of the host", () => {
    const routes = table(
      mount("own", "/a", ["GET /x"], {}, "a.example"),
      mount("all", "/a", ["GET /x"]),
      mount("other", "/a", ["GET /x"], {}, "b.example"),
    );
    assert.deepEqual(tried(routes, "GET", "/a/x", "a.example"), ["all /a/x", "own /a/x"]);
    assert.deepEqual(tried(routes, "GET", "/a/x", "c.example"), ["all /a/x"]);
  });

  test("a path that climbs above the root is invalid", () => {
    assert.equal(table(mount("a", "/a", ["GET /*"])).resolve("*", "GET", "/a/../../x"), undefined);
  });

  test("the cache stays bounded for many different paths", () => {
    const routes = table(mount("a", "/a", ["GET /*"]));
    for (let index = 0; index < 20_000; index += 1)
      assert.deepEqual(tried(routes, "GET", `/a/${index}`), [`a /a/* (${index})`]);
  });

  test("a cached result is found at once, however many routes exist", () => {
    const names = Array.from({ length: 100 }, (_, at) => `x${at}`);
    const routes = table(
      ...names.map((app) =>
        mount(
          app,
          `/${app}`,
          names.map((name) => `GET /${name}`),
        ),
      ),
    );
    const paths = names.flatMap((app) => names.map((name) => `/${app}/${name}`));
    const first = paths.map((path) => routes.resolve("*", "GET", path));
    for (const [at, path] of paths.entries()) assert.equal(routes.resolve("*", "GET", path), first[at], path);
  });

  test("an app with keys that cannot be served is refused, and all of them are named", () => {
    assert.throws(() => mount("a", "/a", ["/x", "GET /y", "GTE /z"]), {
      code: "ROUTE_INVALID",
      message: /^App a: the route key "\/x" .*; the route key "GTE \/z" /,
    });
  });
});

test("a path of thousands of segments is tried with no more bases than apps can have", () => {
  const path = "/a".repeat(8000);
  assert.deepEqual([...basesOf(path, 0)], [""]);
  assert.deepEqual([...basesOf(path, 5)], ["", "/a", "/a/a"]);
  assert.deepEqual([...basesOf("/a/b", 4)], ["", "/a", "/a/b"]);
  assert.deepEqual([...basesOf("/a/b/", 9)], ["", "/a", "/a/b"]);
});

test("only one of the paths that a single wildcard serves is matched", () => {
  const app = mount("a", "/a", ["GET /*", "GET /x/*", "GET /x/y"]);
  const routes = table(app);
  let matched = 0;
  const match = app.routes.match.bind(app.routes);
  app.routes.match = (...requests) => {
    matched += 1;
    return match(...requests);
  };
  for (let at = 0; at < 10_000; at += 1) {
    assert.deepEqual(tried(routes, "GET", `/a/x/${at}`), [`a /a/x/* (${at})`, `a /a/* (x/${at})`]);
  }
  assert.equal(matched, 1);
  assert.deepEqual(tried(routes, "GET", "/a/x/y"), ["a /a/x/y", "a /a/x/* (y)", "a /a/* (x/y)"]);
});

test("a path is routed as by a new table, whatever was looked up before", () => {
  const make = () =>
    table(
      mount("root", "", ["GET /", "POST /*", "GET /a/b"]),
      mount("a", "/a", ["GET /*", "GET /b/*", "PUT /b//*", "GET /c/", "HEAD /b/c", "WS /b/*"]),
      mount("ab", "/a/b", ["GET /c", "DELETE /*"], { priority: 1 }),
      mount("other", "/b", ["GET /c", "GET /c/d/*"], {}, "host"),
    );
  const names = ["a", "b", "c", "d", "..", ".", ""];
  const paths = names.flatMap((one) => names.flatMap((two) => names.map((three) => `/${one}/${two}/${three}`)));
  paths.push("/", "/a", "/b", "/a/b", "/%61/b%2Fc");
  const requests = make();
  for (const path of [...paths, ...paths.toReversed()]) {
    const fresh = make();
    for (const host of ["*", "host"]) {
      for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE", "WS"]) {
        const [known, alone] = [requests, fresh].map((each) => {
          const found = each.resolve(host, method, path);
          const { routed, allowed, upgradable } = found ?? {};
          return { candidates: tried(each, method, path, host), path: found?.path, routed, allowed, upgradable };
        });
        assert.deepEqual(known, alone, `${method} ${path}`);
      }
    }
  }
});

test("the router gets only those of ten thousand routes that can match a path", (t) => {
  const keys = Array.from({ length: 10_000 }, (_, at) => [`GET /exact/${at}`, `GET /below/${at}/*`]).flat();
  const routes = table(mount("a", "/a", [...keys, "POST /exact/*"]));
  const { mock } = t.mock.method(RegExp.prototype, "test");
  assert.deepEqual(tried(routes, "GET", "/a/exact/7000"), ["a /a/exact/7000"]);
  assert.deepEqual(tried(routes, "GET", "/a/below/8000/x"), ["a /a/below/8000/* (x)"]);
  const tests = mock.callCount();
  assert.ok(tests < 20, `${tests} patterns were tried`);
  assert.deepEqual(routes.resolve("*", "GET", "/a/exact/7000")?.allowed, ["GET", "HEAD", "POST"]);
});

test("an app matches the same paths as its keys tried one by one", () => {
  const keys = ["GET /", "GET", "GET /*", "GET /b", "GET /b/", "GET /b//*", "PUT /b/*", "GET /b/c/*", "GET /b/c/d"];
  const { routes } = mount("a", "/a", keys);
  const names = ["", "a", "b", "c", "d", "bc"];
  const paths = names.flatMap((one) => names.flatMap((two) => names.map((three) => `/a/${one}/${two}/${three}`)));
  for (const path of ["/", "/a", "/a/", "/b", "/ab", ...paths.map((path) => path.replace(/\/+/g, "/"))]) {
    const expected = routes.routes.filter(({ kind, prefix }) =>
      kind === "wildcard" ? path === prefix || path.startsWith(`${prefix}/`) : path === prefix,
    );
    const found = routes.match(path, "GET");
    const gets = expected.filter(({ method }) => method === "GET");
    assert.deepEqual(new Set(found.routes.map(({ key }) => key)), new Set(gets.map(({ key }) => key)), path);
    assert.deepEqual(found.methods.toSorted(), expected.map(({ method }) => method).toSorted(), path);
  }
});

test("a table is built at its first use, however many apps were loaded one by one", async () => {
  await using host = await TestService.start({ route: { "GET /": () => "x" } });
  let built = 0;
  const { routes } = host.mount;
  const get = () => {
    built += 1;
    return routes;
  };
  Object.defineProperty(host.mount, "routes", { get });
  for (let at = 0; at < 100; at += 1) {
    host.service.mount(mount(`app${at}`, `/app${at}`, ["GET /"]));
    await nextTurn();
  }
  assert.equal(built, 0);
  assert.equal(host.service.table.resolve("*", "GET", "/app99/")?.routed, true);
  assert.equal(built, 1);
});
