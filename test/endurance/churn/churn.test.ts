import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { exampleNames } from "#test/contract/docs/examples/support.ts";
import { churn } from "./churn.ts";
import { changeConfig } from "./config_changes.ts";
import { reloadUnderLoad } from "./reloads.ts";

test("ten changes of the configuration under requests: none fails, and streams and websockets go on", async () => {
  const report = await changeConfig({ changes: 10 });
  assert.deepEqual(report.failures, []);
  assert.deepEqual([report.applied, report.refused, report.echoed], [9, 1, 18]);
});

for (const [form, reloads] of [
  ["in the host's thread", 4],
  ["in a worker", 2],
] as const) {
  test(`reloads of a module ${form}, with uploads, downloads, streams and websockets open: nothing fails`, async () => {
    const report = await reloadUnderLoad({ reloads, isolated: form === "in a worker" });
    assert.deepEqual(report.failures, []);
    assert.deepEqual([report.reloads, report.held, report.echoed], [reloads, 4 * reloads, 2 * reloads]);
  });
}

const cycles = 2;

describe("two loads, reloads and unloads under requests", () => {
  for (const example of exampleNames) {
    for (const form of ["file", "value"] as const) {
      test(`of the example ${example} as a ${form}: no request fails and nothing is left`, async () => {
        const report = await churn(example, { cycles, form });
        assert.deepEqual(report.failures, []);
        assert.equal(report.cycles, cycles);
        assert.ok(report.answered >= cycles * 3 * 6, `${report.answered} answers`);
        assert.ok(report.duringReload >= cycles * 3 * 2, `${report.duringReload} of them during a reload`);
        assert.ok(report.instances >= cycles * 2, `${report.instances} instances`);
        // The last one may still be named by a variable that has not been overwritten.
        assert.ok(report.survivors <= 1, `${report.survivors} of ${report.instances} instances are still in memory`);
        assert.ok(report.neighbour > cycles, `${report.neighbour} of the neighbour`);
      });
    }
  }
});
