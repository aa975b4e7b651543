import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import type { HttpRequest, Module, ServerTokens } from "#core/types.ts";
import { scopes as rpcScopes } from "#modules/mod_http_api/scopes.ts";
import { accessOf } from "#modules/mod_http_openmetrics/access.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";
import { declaring } from "#test/support/token_scopes.ts";

function accessWith(given: Record<string, unknown>) {
  const get = (name: string) => given[name];
  return accessOf({
    get_option: get,
    get_option_array: get,
    tokens: { identify: () => undefined },
  } as unknown as Module);
}

const request = (ip: string, headers: Record<string, string> = {}) =>
  ({ ip, ...sentHeaders({ host: "10.0.0.1:5280", ...headers }), url: {} }) as unknown as HttpRequest;

test("metrics can be read from the listed addresses and ranges, and under the listed names", () => {
  const mayRead = accessWith({
    openmetrics_allow_ips: ["10.1.0.0/16", "fd00::/8"],
    openmetrics_hosts: ["Metrics.Internal"],
  });
  assert.equal(mayRead(request("10.1.2.3")), undefined);
  assert.equal(mayRead(request("fd00::7")), undefined);
  assert.match(mayRead(request("10.2.0.1"))?.message ?? "", /openmetrics_allow_ips/);
  assert.match(
    mayRead(request("127.0.0.1"))?.message ?? "",
    /openmetrics_allow_ips/,
    "where the option leaves this machine out",
  );
  assert.equal(mayRead(request("10.1.2.3", { host: "metrics.internal:5280" })), undefined);
  assert.match(mayRead(request("10.1.2.3", { host: "attacker.example" }))?.message ?? "", /openmetrics_hosts/);
  assert.match(
    mayRead(request("10.1.2.3", { x_forwarded_for: "192.0.2.1" }))?.message ?? "",
    /through a proxy/,
    "whoever asks a proxy of the network",
  );
  assert.match(mayRead(request("10.1.2.3", { authorization: "Bearer any" }))?.message ?? "", /openmetrics_tokens/);
});

test("wrong values are named, and tokens are not shown", () => {
  for (const entry of ["localhost", "10.0.0.0/33", "::1/129", "10.0.0.0/x"]) {
    assert.throws(() => accessWith({ openmetrics_allow_ips: [entry] }), { code: "OPTION_INVALID" }, entry);
  }
  assert.throws(() => accessWith({ openmetrics_tokens: { secret: { paths: [] } } }), {
    code: "OPTION_INVALID",
    message: /openmetrics_tokens is \*\*\*/,
  });
});

test("a token with the scope metrics gives access from anywhere, and other tokens are refused as for all apps", async (t) => {
  let tokens: ServerTokens | undefined;
  const running = await createTestHost({
    config: { modules_enabled: ["http_openmetrics", "http_admin"] },
    modules: [
      declaring(...rpcScopes),
      function mod_make(module: Module) {
        tokens = module.server.tokens;
      },
    ],
  });
  t.after(() => running.stop());
  const ask = async (secret: string) =>
    running.inject({
      path: "/metrics",
      headers: { Authorization: `Bearer ${secret}`, Host: "far.example" },
      remote_address: "192.0.2.7",
    });
  const make = async (name: string, scopes: string[]) => (await tokens?.create({ name, scopes }))?.secret ?? "";
  const secret = await make("prometheus", ["metrics"]);
  const read = await ask(secret);
  assert.equal(read.status, 200);
  assert.match(read.body, /modhost_/);
  const other = await ask(await make("other", ["rpc:*", "app:*", "admin"]));
  assert.equal(other.status, 403);
  assert.match(other.body, /The token other lacks the scope metrics/);
  const counted = (await ask(secret)).body;
  assert.match(counted, /^modhost_token_requests_total\{token="prometheus"\} 2$/m);
  assert.match(counted, /^modhost_token_refusals_total\{token="other",reason="scope"\} 1$/m);
  await tokens?.revoke("prometheus");
  const gone = await ask(secret);
  assert.equal(gone.status, 401);
  assert.match(String(gone.headers["www-authenticate"]), /invalid_token/);
});
