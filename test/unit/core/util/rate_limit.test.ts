import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOf, RateLimit, rateOption, readRate } from "#core/util/rate_limit.ts";

test("buckets fill over time, and their number is limited", () => {
  let now = 0;
  const limit = new RateLimit({ perSecond: readRate("60/m") as number, burst: 2 }, () => now);
  assert.deepEqual([limit.take("a"), limit.take("a"), limit.take("a")], [0, 0, 1]);
  now = 1000;
  assert.deepEqual([limit.take("a"), limit.take("a")], [0, 1]);
  for (let at = 0; at < 20_000; at += 1) limit.take(`10.0.${at >> 8}.${at & 255}`);
  assert.equal(limit.clients, 10_000);
});

test("IPv6 addresses count by their network", () => {
  const same = ["2001:db8::1", "2001:0db8:0:0::2", "2001:db8:0:0:1:2:3:4", "2001:db8::1:2:3:4"];
  assert.equal(new Set(same.map(clientOf)).size, 1);
  assert.deepEqual(["::1", "10.0.0.1", "1::2:3:4:5:6:7"].map(clientOf), ["0:0:0:0", "10.0.0.1", "1:0:2:3"]);
});

test("a rate option has a burst of at least one request", () => {
  assert.equal(rateOption("", 5, "a_rate"), undefined);
  assert.deepEqual(rateOption("20/s", 0, "a_rate"), { perSecond: 20, burst: 20 });
  assert.deepEqual(rateOption("5/m", 0, "a_rate"), { perSecond: 5 / 60, burst: 1 });
  assert.deepEqual(rateOption("5/s", 50, "a_rate"), { perSecond: 5, burst: 50 });
  for (const text of ["5", "0/s", "5/d", "-1/s"]) {
    assert.throws(() => rateOption(text, 0, "a_rate"), { code: "OPTION_INVALID", message: /a_rate .*10\/s/ });
  }
});
