import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { badHost, hostName, unknownHost, VirtualHosts } from "#core/http/routing/hosts.ts";

describe("virtual hosts", () => {
  test("ports, case and a final dot do not matter", () => {
    for (const text of ["A.Example", "a.example:80", "a.example.", "a.example:"])
      assert.equal(hostName(text), "a.example", text);
    assert.equal(hostName("[::1]:5280"), "[::1]");
    for (const text of ["", "a b", "a/b", "a:b", "a@b", "[::1"]) assert.equal(hostName(text), undefined, text);
  });

  test("any host is served without names; with names an unknown host needs a default", () => {
    assert.equal(new VirtualHosts([], undefined).choose("whatever"), "*");
    assert.equal(new VirtualHosts(["A.example"], undefined).choose("a.example:1"), "a.example");
    assert.equal(new VirtualHosts(["a.example"], undefined).choose("b.example"), unknownHost);
    assert.equal(new VirtualHosts([], undefined).choose("a b"), badHost);
    assert.equal(new VirtualHosts(["a.example"], "a.example").choose("b.example"), "a.example");
  });
});
