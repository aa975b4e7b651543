import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { showsFailures } from "#core/host/failure_page.ts";
import { isForwarded, type LocalCallers, strangerReason } from "#core/http/policy/local_caller.ts";
import type { HttpRequest } from "#core/types.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";

test("a header of a proxy, in any spelling that servers accept, makes a request count as forwarded", () => {
  for (const name of [
    "forwarded",
    "via",
    "x_real_ip",
    "x-real-ip",
    "x_forwarded_for",
    "X-Forwarded-Proto",
    "x.real_ip",
  ])
    assert.equal(isForwarded(sentHeaders({ [name]: "x" }).raw), true, name);
  for (const name of ["host", "viable", "x_forward", "accept"])
    assert.equal(isForwarded(sentHeaders({ [name]: "x" }).raw), false, name);
});

test("sources of a failed reload are shown only to browsers on this machine without a proxy", () => {
  const shown = (headers: Record<string, string>, remoteAddress = "::ffff:127.0.0.1") =>
    showsFailures({
      headers: { accept: "text/html", ...headers },
      ...sentHeaders(headers).raw,
      socket: { remoteAddress },
    });
  assert.equal(shown({}), true);
  assert.equal(shown({}, "192.0.2.1"), false);
  assert.equal(shown({ "x-forwarded-proto": "https" }), false);
  assert.equal(shown({ x_forwarded_proto: "https" }), false);
  assert.equal(shown({ "sec-fetch-mode": "cors" }), false);
});

describe("a caller without a secret", () => {
  const reason = (ip: string, headers: Record<string, string>, more: Partial<LocalCallers> = {}) =>
    strangerReason({ ip, ...sentHeaders(headers), url: {} } as unknown as HttpRequest, {
      hosts: new Set(["ops.example"]),
      ...more,
    });

  test("has an address of this machine, uses no proxy, and names this machine", () => {
    for (const host of ["localhost", "LOCALHOST.:80", "127.0.0.7:1", "[::1]:5280", "ops.example:80"])
      assert.equal(reason("127.0.0.1", { host }), undefined, host);
    for (const host of ["evil.example", "localhost.evil.example", "192.0.2.1", "0.0.0.0"])
      assert.equal(reason("127.0.0.1", { host }), "foreign name", host);
    assert.equal(reason("192.0.2.1", { host: "localhost" }), "other machine");
    assert.equal(reason("::1", { host: "localhost", via: "1.1 proxy" }), "proxy");
  });

  test("is not a browser when it names no host", () => {
    assert.equal(reason("127.0.0.1", {}), undefined);
    assert.equal(reason("127.0.0.1", { x_real_ip: "127.0.0.1" }), "proxy");
  });

  test("names this machine by an address or its own name when it has another address of the list", () => {
    const includes = (address: string) => address.startsWith("10.");
    assert.equal(reason("10.0.0.2", { host: "10.0.0.1:5280" }, { includes }), undefined);
    assert.equal(reason("10.0.0.2", { host: "evil.example" }, { includes }), "foreign name");
    assert.equal(reason("127.0.0.1", { host: "localhost" }, { includes }), "other machine");
  });
});
