import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestHost } from "../../core/testing/index.ts";
import type { Handler } from "../../core/types.ts";

for (const [name, config] of Object.entries({
  trusted_proxies: { trusted_proxies: ["banana"] },
  http_default_host: { hosts: { "a.example": {} }, http_default_host: "b.example" },
})) {
  test(`a wrong ${name} stops the start and is named`, async () => {
    await assert.rejects(createTestHost({ config: { modules_enabled: ["http"], ...config } }), {
      code: "OPTION_INVALID",
      message: new RegExp(name),
    });
  });
}

test("several apps are put into the table in one step, and a key that cannot be served is named once", async () => {
  await using started = await createTestHost({
    config: { modules_enabled: ["http"] },
    modules: [
      {
        name: "odd",
        load(module) {
          module.depends("http");
          const route: Record<string, Handler> = { "/no-method": () => "x", "GET /good": () => "good" };
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
  assert.equal(await (await started.fetch("/odd/good")).text(), "good");
  assert.equal(await (await started.fetch("/other/")).text(), "other");
  assert.equal(started.log().filter((line) => line.includes("/no-method")).length, 1);
});
