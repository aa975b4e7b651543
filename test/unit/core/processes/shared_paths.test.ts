/** The requests that only the primary serves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpModule } from "#core/http/index.ts";
import { pathsOf, requestPath, sharedPaths } from "#core/processes/shared_paths.ts";

const http = (
  routes: readonly [string, string][],
  middleware: readonly string[] = [],
  claimants: readonly string[] = [],
) =>
  ({
    routes: () => routes.map(([path, module]) => ({ path, module })),
    middleware: () => middleware.map((module) => ({ module })),
    claimants: () => claimants.map((module) => ({ app: module, module })),
  }) as unknown as HttpModule;

const shared = new Set(["kept"]);

test("the primary serves the paths of shared modules, below wildcards, and no others", () => {
  const isShared = sharedPaths(
    pathsOf(
      http([
        ["/api/v0/*", "kept"],
        ["/kept/count", "kept"],
        ["/files/*", "files"],
      ]),
      shared,
    ),
  );
  for (const path of ["/api/v0", "/api/v0/cat", "/kept/count"]) assert.equal(isShared(path), true, path);
  for (const path of ["/", "/api/v01", "/kept/count/more", "/kept", "/files/api/v0/cat"])
    assert.equal(isShared(path), false, path);
});

test("the primary serves every path if a shared module handles every request", () => {
  for (const each of [http([["/*", "kept"]]), http([], ["kept"]), http([], [], ["kept"])])
    assert.equal(sharedPaths(pathsOf(each, shared))("/anything"), true);
  assert.equal(sharedPaths(pathsOf(http([], ["other"], ["other"]), shared))("/anything"), false);
  assert.equal(sharedPaths(pathsOf(undefined, shared))("/anything"), false);
});

test("a path is the same in each of its spellings", () => {
  for (const target of ["/api/v0/cat?arg=x", "/%61pi/v0/cat", "//api//v0/cat", "http://host/api/v0/cat"])
    assert.equal(requestPath(target), "/api/v0/cat", target);
  assert.equal(requestPath("*"), undefined);
});
