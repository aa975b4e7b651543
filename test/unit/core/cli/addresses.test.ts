import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { appAddresses } from "#core/cli/addresses.ts";
import type { RouteInfo } from "#core/http/index.ts";

const ports = [{ service: "http", scheme: "http", address: "*", port: 5280 }];

/** Returns the URL that is shown for an app with these routes. */
function shown(...routes: [method: string, path: string, kind: RouteInfo["kind"]][]): string {
  const infos = routes.map(([method, path, kind]) => ({ method, path, kind, host: "*", app: "a", module: "a" }));
  const [app] = appAddresses(infos, ports);
  return app?.urls.join(" ").replace("http://localhost:5280", "") ?? "none";
}

describe("the address that is shown for an app", () => {
  test("belongs to a route that serves, and not to one that redirects there", () =>
    assert.equal(shown(["GET", "/paste", "redirect"], ["GET", "/paste/", "exact"]), "/paste/"));
  test("is the fixed beginning of the path for middleware and wildcard routes", () => {
    assert.equal(shown(["*", "/site/*", "middleware"]), "/site/");
    assert.equal(shown(["GET", "/files/*", "wildcard"]), "/files/");
  });
  test("can be opened by a browser", () => {
    assert.equal(shown(["POST", "/a", "exact"], ["WS", "/a/w", "exact"], ["GET", "/a/page", "exact"]), "/a/page");
    assert.equal(shown(["POST", "/a", "exact"]), "/a");
  });
});
