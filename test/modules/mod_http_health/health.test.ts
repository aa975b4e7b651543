import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { Module, ModuleState } from "../../../core/types.ts";
import health from "../../../modules/mod_http_health/index.ts";
import { Harness } from "../harness.ts";

describe("health", () => {
  let server: Harness;
  let module: Module;
  let states: Partial<ModuleState>[];

  beforeEach(async () => {
    server = await new Harness().start();
    states = [{ name: "http", status: "loaded" }];
    module = Object.assign(server.module("http_health"), { modules: () => states as ModuleState[] });
    health(module);
  });
  afterEach(() => server.stop());

  const ready = async () => {
    const { status, headers, text } = await server.fetch("/health/ready");
    assert.equal(headers["content-type"], "application/json; charset=utf-8");
    assert.equal(headers["cache-control"], "no-store");
    return [status, JSON.parse(text)];
  };

  test("live answers as long as anything does", async () => {
    const { status, headers, text } = await server.fetch("/health/live");
    assert.deepEqual([status, text, headers["content-type"]], [200, "ok\n", "text/plain; charset=utf-8"]);
  });

  test("ready comes with the open ports and goes with the stop", async () => {
    assert.deepEqual(await ready(), [503, { ready: false, state: "starting", failed: [] }]);
    module.ready?.();
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: [] }]);
    server.bus.fire("server-stopping", {});
    assert.deepEqual(await ready(), [503, { ready: false, state: "stopping", failed: [] }]);
    module.ready?.();
    assert.equal((await ready())[0], 503);
  });

  test("names failed modules once, and stays ready", async () => {
    module.ready?.();
    states.push(
      { name: "b", host: "x", status: "failed" },
      { name: "b", host: "y", status: "failed" },
      { name: "a", status: "failed" },
    );
    assert.deepEqual(await ready(), [200, { ready: true, state: "ready", failed: ["a", "b"] }]);
  });
});
