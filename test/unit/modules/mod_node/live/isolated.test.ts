/**
 * Tests whose packets would leave the loopback interface. They run in a network namespace of their
 * own.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isolated, loopback, noIsolation } from "#test/support/isolated.ts";

test("Discovery.MDNS.Enabled and Discovery.MDNS.Interval count while the node runs", {
  skip: noIsolation,
}, async () => {
  const multicast = "udp 0.0.0.0:5353";
  assert.deepEqual(await isolated(new URL("isolated/discovery.ts", import.meta.url), [loopback]), {
    before: [],
    found: true,
    during: [multicast, multicast],
    gone: [],
  });
});
