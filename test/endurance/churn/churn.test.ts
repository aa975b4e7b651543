import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import { exampleNames } from "#test/contract/docs/examples/support.ts";
import { churn } from "./churn.ts";
import { changeConfig } from "./config_changes.ts";
import { reloadUnderLoad } from "./reloads.ts";

test("ten changes of the configuration fail no requests and interrupt no streams and websockets", async () => {
  const report = await changeConfig({ changes: 10 });
  assert.deepEqual(report.failures, []);
  assert.deepEqual([report.applied, report.refused, report.echoed], [9, 1, 18]);
});

for (const [form, run, reloads] of [
  ["in the host's thread", "trusted", 4],
  ["in a worker", "isolated", 2],
  ["in a sandbox", "sandboxed", 2],
] as const) {
  const skip = run === "sandboxed" && (sandboxUnavailable() ?? false);
  test(`reloads of a module ${form} fail no uploads, downloads, streams and websockets, and leave nothing`, {
    skip,
  }, async () => {
    const report = await reloadUnderLoad({ reloads, run });
    assert.deepEqual(report.failures, []);
    assert.ok(report.left.processes <= 0 && report.left.mounts <= 0, JSON.stringify(report.left));
    // Clients and the first use of each part of Node.js keep some open.
    assert.ok(report.left.descriptors <= 16, JSON.stringify(report.left));
    assert.deepEqual([report.reloads, report.spanning, report.echoed], [reloads, 4 * reloads, 2 * reloads]);
  });
}

const cycles = 2;

describe("two loads, reloads and unloads under requests", () => {
  for (const example of exampleNames) {
    for (const form of ["file", "value"] as const) {
      test(`of the example ${example} as a ${form} fail no request and leave nothing behind`, async () => {
        const report = await churn(example, { cycles, form });
        assert.deepEqual(report.failures, []);
        assert.equal(report.cycles, cycles);
        assert.ok(report.responses >= cycles * 3 * 6, `${report.responses} responses`);
        assert.ok(report.duringReload >= cycles * 3 * 2, `${report.duringReload} of them during a reload`);
        assert.ok(report.instances >= cycles * 2, `${report.instances} instances`);
        // A variable that has not been overwritten yet may still refer to the last one.
        assert.ok(report.survivors <= 1, `${report.survivors} of ${report.instances} instances are still in memory`);
        assert.ok(report.neighbour > cycles, `${report.neighbour} of the neighbour`);
      });
    }
  }
});
