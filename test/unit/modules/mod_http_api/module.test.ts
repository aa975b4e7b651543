import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft } from "#core/testing/index.ts";
import { startHost } from "#test/support/host.ts";
import { ask } from "./support.ts";

test("the module loads by its name, reads its options, and leaves nothing behind", async () => {
  await using host = await startHost({
    config: {
      https_ports: [],
      modules_enabled: ["http_api"],
      api_hosts: ["Node.example"],
      api_tokens: ["open sesame"],
    },
  });
  const version = await ask(host.http, "version", { headers: { Host: "node.example" } });
  assert.deepEqual([version.status, JSON.parse(version.body).Version], [200, "0.9.0"]);
  const through = { "X-Forwarded-For": "203.0.113.7" };
  assert.equal((await ask(host.http, "version", { headers: through })).status, 403);
  const known = { ...through, Authorization: "Bearer open sesame" };
  assert.equal((await ask(host.http, "version", { headers: known })).status, 200);
  await host.host.unload("http_api");
  assertNothingLeft(host.host, "http_api");
  assert.equal((await ask(host.http, "version")).status, 404);
});
