import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestCounts } from "#core/http/lifecycle/request_counts.ts";
import type { HttpFinishedEvent } from "#core/types.ts";

const finished = (module: string, route: string, duration: number) =>
  ({ module, route, duration, status: 200, complete: true, received: 2, bytes: 5, busy: 1 }) as HttpFinishedEvent;

test("the total includes all routes, and modules that are gone", () => {
  const counts = new RequestCounts();
  counts.count(finished("shop", "GET /shop", 3));
  counts.count(finished("shop", "GET /shop/items", 40));
  counts.count(finished("mail", "GET /mail", 3));
  counts.forget("shop");
  counts.count(finished("mail", "GET /mail", 3));
  const { classes, received, sent, handler, duration, latencies } = counts.total;
  assert.deepEqual([[...classes], received, sent, handler, duration], [[0, 0, 4, 0, 0, 0], 8, 20, 4, 49]);
  assert.deepEqual([...latencies].slice(0, 7), [0, 0, 3, 0, 0, 1, 0]);
  assert.deepEqual(
    [...counts].map((route) => route.route),
    ["GET /mail"],
  );
});
