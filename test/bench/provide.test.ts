import assert from "node:assert/strict";
import { test } from "node:test";
import { byRegion, oneByOne } from "./provide.ts";

test("announcing by region takes far fewer lookups and connections than announcing keys one by one, and as many records", async () => {
  const keys = 100;
  const swept = await byRegion(500, 50 * keys);
  const single = await oneByOne(500, keys);
  assert.equal(swept.traffic.records, 50 * single.traffic.records);
  assert.equal(single.traffic.lookups, keys);
  assert.ok(swept.traffic.lookups < keys, `${swept.traffic.lookups} lookups`);
  assert.ok(swept.traffic.connections <= 500);
  assert.ok(swept.time < single.time);
});
