/** Permissions to connect: how they are written, and which connections they cover. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connectItem, permissionKinds } from "#core/permissions/index.ts";

const { fault } = permissionKinds.connect;

describe("an item of connect", () => {
  test("is a host or an address with a port", () => {
    for (const item of [
      "api.example.org:443",
      "API.example.org.:443",
      "*.example.org:443",
      "api.example.org:*",
      "bücher.example:443",
      "10.0.0.5:5432",
      "[::1]:80",
      "_srv.example.org:1",
    ]) {
      assert.equal(fault(item), undefined, item);
    }
  });

  test("is refused with the reason if it is anything else", () => {
    const cases: readonly [item: string, reason: RegExp][] = [
      ["api.example.org", /a host and a port/],
      ["https://api.example.org:443", /a host and a port/],
      ["api.example.org:0", /a host and a port/],
      ["api.example.org:65536", /a host and a port/],
      ["::1:443", /such as .* or "\[::1\]:443"/],
      ["*:443", /the first label alone/],
      ["api.*.org:443", /the first label alone/],
      ["a*.example.org:443", /a host and a port/],
      ["localhost:80", /this machine, which is granted only by address/],
      ["db.localhost:80", /this machine/],
      ["127.1:80", /a host and a port/],
      ["0x7f000001:80", /a host and a port/],
      ["2130706433:80", /a host and a port/],
      ["[api.example.org]:443", /a host and a port/],
      ["user@api.example.org:443", /a host and a port/],
      ["", /a host and a port/],
    ];
    for (const [item, reason] of cases) assert.match(fault(item) ?? "accepted", reason, item);
  });
});

describe("a connection", () => {
  const covers = (item: string, host: string, port: number) => connectItem([item], { host, port }) !== undefined;

  test("is covered by its host and port, whatever the spelling", () => {
    assert.ok(covers("API.Example.org:443", "api.example.ORG.", 443));
    assert.ok(covers("api.example.org:*", "api.example.org", 8443));
    assert.ok(covers("bücher.example:443", "xn--bcher-kva.example", 443));
    assert.ok(!covers("api.example.org:443", "api.example.org", 80));
    assert.ok(!covers("api.example.org:443", "www.api.example.org", 443));
    assert.ok(!covers("api.example.org:443", "api.example.org.evil.test", 443));
  });

  test("is covered by a wildcard for exactly one label", () => {
    assert.ok(covers("*.example.org:443", "a.example.org", 443));
    for (const host of ["example.org", "a.b.example.org", "evilexample.org", ".example.org", "*.example.org"]) {
      assert.ok(!covers("*.example.org:443", host, 443), host);
    }
  });

  test("to a private address is covered by the same address, however it is written", () => {
    assert.ok(covers("10.0.0.5:5432", "10.0.0.5", 5432));
    assert.ok(covers("10.0.0.5:5432", "::ffff:10.0.0.5", 5432));
    assert.ok(covers("[0:0:0:0:0:0:0:1]:80", "[::1]", 80));
    assert.ok(!covers("10.0.0.5:5432", "10.0.0.6", 5432));
    assert.ok(!covers("10.0.0.5:5432", "10.0.0.5", 5433));
  });

  test("to a literal address is covered by no name", () => {
    assert.ok(!covers("*.example.org:443", "93.184.216.34", 443));
  });
});
