import assert from "node:assert/strict";
import { test } from "node:test";
import { showsFailures } from "#core/host/failure_page.ts";
import { isForwarded } from "#core/http/local_caller.ts";

test("any header field of a proxy tells that a request was handed on, with dashes or underscores", () => {
  for (const name of ["forwarded", "via", "x_real_ip", "x-real-ip", "x_forwarded_for", "x-forwarded-proto"])
    assert.equal(isForwarded({ headers: { [name]: "x" } }), true, name);
  for (const name of ["host", "viable", "x_forward", "accept"])
    assert.equal(isForwarded({ headers: { [name]: "x" } }), false, name);
});

test("sources of a reload that failed are shown to browsers of this machine, and through no proxy", () => {
  const shown = (headers: Record<string, string>, remoteAddress = "::ffff:127.0.0.1") =>
    showsFailures({ headers: { accept: "text/html", ...headers }, socket: { remoteAddress } });
  assert.equal(shown({}), true);
  assert.equal(shown({}, "192.0.2.1"), false);
  assert.equal(shown({ "x-forwarded-proto": "https" }), false);
  assert.equal(shown({ "sec-fetch-mode": "cors" }), false);
});
