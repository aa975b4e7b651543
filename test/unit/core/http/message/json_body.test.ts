import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { json } from "#core/index.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { Handler, Module } from "#core/types.ts";

const echo: Handler = async (event) => json([await event.request.json(), await event.request.json()]);
const small: Handler = async (event) => json(await event.request.json({ max_bytes: 10 }));

const hostOf = () =>
  createTestHost({
    config: { https_ports: [0] },
    modules: ["buffered", "streaming"].map((name) => ({
      name,
      load(module: Module) {
        module.depends("http");
        const route = { "POST /": echo, "POST /small": small, "GET /": echo };
        module.provides("http", { route, streaming_uploads: name === "streaming" });
      },
    })),
  });

describe("request.json", () => {
  for (const app of ["buffered", "streaming"]) {
    test(`returns the value of the body, as often as it is called: ${app}`, async () => {
      await using host = await hostOf();
      const { status, body } = await host.inject({ method: "POST", path: `/${app}/`, body: '{"a":"é"}' });
      assert.deepEqual([status, body], [200, '[{"a":"é"},{"a":"é"}]']);
    });

    for (const [what, body, reason] of [
      ["no JSON", "{ bad", /is not JSON: .*position 2/],
      ["nothing", "", /is not JSON: it is empty/],
      ["no UTF-8", Buffer.from([0x22, 0xff, 0x22]), /is not JSON: it is not UTF-8/],
    ] as const) {
      test(`gets a 400 with a reason for ${what}: ${app}`, async () => {
        await using host = await hostOf();
        const headers = { accept: "text/plain" };
        const response = await host.inject({ method: "POST", path: `/${app}/`, body, headers });
        assert.equal(response.status, 400);
        assert.match(response.body, reason);
        assert.deepEqual(host.logged("error"), []);
      });
    }

    test(`gets a 400 for a request without a body: ${app}`, async () => {
      await using host = await hostOf();
      assert.equal((await host.inject(`/${app}/`)).status, 400);
    });

    test(`gets a 413 beyond its limit: ${app}`, async () => {
      await using host = await hostOf();
      const send = (body: string, path = "small") => host.inject({ method: "POST", path: `/${app}/${path}`, body });
      assert.equal((await send('"12345678"')).status, 200);
      assert.equal((await send('"123456789"')).status, 413);
      assert.equal((await send(`"${"x".repeat(1024 * 1024)}"`, "")).status, 413);
    });
  }
});
