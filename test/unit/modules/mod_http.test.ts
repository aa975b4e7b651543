import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { Handler, HttpProvider, Module } from "#core/types.ts";

for (const [name, config] of Object.entries({
  trusted_proxies: { trusted_proxies: ["banana"] },
  http_default_host: { hosts: { "a.example": {} }, http_default_host: "b.example" },
})) {
  test(`a wrong ${name} prevents the start, and is named`, async () => {
    await assert.rejects(createTestHost({ config: { modules_enabled: ["http"], ...config } }), {
      code: "OPTION_INVALID",
      message: new RegExp(name),
    });
  });
}

for (const name of [
  "http_head_timeout",
  "http_idle_timeout",
  "http_websocket_ping_interval",
  "http_websocket_close_timeout",
]) {
  test(`a ${name} longer than timers support prevents the start, and is named`, async () => {
    await assert.rejects(createTestHost({ config: { modules_enabled: ["http"], [name]: "25d" } }), {
      code: "CONFIG_INVALID",
      message: new RegExp(`${name}.* to 86400`, "s"),
    });
  });
}

test("several apps are added to the route table in one step, and an app with invalid keys fails the load of its module", async () => {
  await using started = await createTestHost({
    allow_failed: true,
    config: { modules_enabled: ["http"] },
    modules: [
      {
        name: "odd",
        load(module) {
          module.depends("http");
          const route: Record<string, Handler> = {
            "/no-method": () => "x",
            "GTE /": () => "y",
            "GET /good": () => "z",
          };
          module.provides("http", { route });
        },
      },
      {
        name: "other",
        load(module) {
          module.depends("http");
          module.provides("http", { route: { "GET /": () => "other" } });
        },
      },
    ],
  });
  assert.equal((await started.fetch("/odd/good")).status, 404);
  assert.equal(await (await started.fetch("/other/")).text(), "other");
  const [odd] = started.host.modules().filter(({ status }) => status === "failed");
  assert.equal(odd?.name, "odd");
  assert.match(odd?.note ?? "", /"\/no-method" lacks a method.*"GTE \/" names the method GTE/);
  assert.equal(started.log().filter((line) => line.includes("/no-method")).length, 1);
});

test("a provider without routes and middleware fails the load of its module", async () => {
  const load = (module: Module) => {
    module.depends("http");
    module.provides("http", {} as HttpProvider);
  };
  await assert.rejects(
    createTestHost({ modules: [{ name: "bare", load }] }),
    /App bare: provides\("http"\) takes .*route is missing/,
  );
});

test("a reload to invalid keys keeps the old instance", async () => {
  let key = "GET /";
  const load = (module: Module) => {
    module.depends("http");
    const route: Record<string, Handler> = { [key]: () => "served" };
    module.provides("http", { route });
  };
  await using host = await createTestHost({ modules: [{ name: "turn", load }] });
  key = "GTE /";
  await assert.rejects(host.reload("turn"), { code: "ROUTE_INVALID", message: /GTE/ });
  assert.equal((await host.inject("/turn/")).body, "served");
});

test("a key that looks like a pattern causes a warning, and is served literally", async () => {
  const load = (module: Module) => {
    module.depends("http");
    module.provides("http", { route: { "GET /of/:id": () => "literal" } });
  };
  await using host = await createTestHost({ modules: [{ name: "parameters", load }] });
  assert.match(
    host
      .logged("warn")
      .map(({ msg }) => msg)
      .join(),
    /"GET \/of\/:id".*write "GET \/of\/\*"/,
  );
  assert.equal((await host.inject("/parameters/of/:id")).body, "literal");
});
