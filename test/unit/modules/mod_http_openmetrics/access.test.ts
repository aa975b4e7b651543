import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest, Module } from "#core/types.ts";
import { accessOf } from "#modules/mod_http_openmetrics/access.ts";

function accessWith(given: Record<string, unknown>) {
  const get = (name: string) => given[name];
  return accessOf({ get_option: get, get_option_array: get } as unknown as Module);
}

const request = (ip: string, headers: Record<string, string> = {}) =>
  ({ ip, headers: { host: "10.0.0.1:5280", ...headers }, url: {} }) as unknown as HttpRequest;

test("addresses and ranges that may read, and names under which they ask", () => {
  const mayRead = accessWith({
    openmetrics_allow_ips: ["10.1.0.0/16", "fd00::/8"],
    openmetrics_hosts: ["Metrics.Internal"],
  });
  assert.equal(mayRead(request("10.1.2.3")), undefined);
  assert.equal(mayRead(request("fd00::7")), undefined);
  assert.match(mayRead(request("10.2.0.1")) ?? "", /openmetrics_allow_ips/);
  assert.match(
    mayRead(request("127.0.0.1")) ?? "",
    /openmetrics_allow_ips/,
    "where the option leaves this machine out",
  );
  assert.equal(mayRead(request("10.1.2.3", { host: "metrics.internal:5280" })), undefined);
  assert.match(mayRead(request("10.1.2.3", { host: "attacker.example" })) ?? "", /openmetrics_hosts/);
  assert.match(mayRead(request("10.1.2.3", { authorization: "Bearer any" })) ?? "", /openmetrics_tokens/);
});

test("wrong values are named, tokens are not shown", () => {
  for (const entry of ["localhost", "10.0.0.0/33", "::1/129", "10.0.0.0/x"]) {
    assert.throws(() => accessWith({ openmetrics_allow_ips: [entry] }), { code: "OPTION_INVALID" }, entry);
  }
  assert.throws(() => accessWith({ openmetrics_tokens: { secret: { paths: [] } } }), {
    code: "OPTION_INVALID",
    message: /openmetrics_tokens is \*\*\*/,
  });
});
