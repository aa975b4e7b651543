/**
 * A hostile program tries to escape from the sandbox, with every combination of layers that this
 * machine has. `test/support/sandbox/hostile.mjs` lists the attempts.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import {
  layersText,
  missing,
  noBare,
  noNative,
  noNobody,
  runHostile,
  unavailable,
  wrong,
} from "#test/support/sandbox/combinations.ts";
import type { Report } from "#test/support/sandbox/host.ts";

function assertContained(report: Report, attempts: number): void {
  assert.equal(report.code, 0, report.stderr);
  assert.deepEqual(wrong(report), []);
  assert.deepEqual(report.changed, []);
  assert.equal(report.stderr, "");
  const count = Object.keys(report.outcomes).length - report.allowed.length;
  assert.ok(count >= attempts, `${count} attempts`);
  assert.equal(report.outcomes["has only its own environment"], 'got {"ONLY":"this"}');
}

describe("a hostile program", { skip: unavailable, concurrency: 2 }, () => {
  before(() => void process.stderr.write(`${layersText()}\n`));

  test("succeeds with most attempts outside of a sandbox", { skip: noNative || noNobody }, async () => {
    const report = await runHostile({ namespaces: "off", user: "same", isNative: true, isControl: true }, "nobody");
    const got = Object.values(report.outcomes).filter((outcome) => outcome.startsWith("got")).length;
    assert.ok(got >= 100, `${got} attempts succeeded`);
    assert.ok(report.changed.length >= 6, report.changed.join());
  });

  for (const abi of [1, 2, 3, 4, 5, undefined]) {
    const rules = abi === undefined ? "all rules of this kernel" : `rules of ABI ${abi}`;
    test(`gets nothing by native code under Landlock and seccomp, with ${rules}`, { skip: noNative }, async () => {
      const landlockAbi = abi !== undefined && { landlockAbi: abi };
      assertContained(await runHostile({ namespaces: "off", user: "same", isNative: true, ...landlockAbi }), 150);
    });
  }

  test("gets nothing by native code as an ordinary user, with rules of ABI 1", {
    skip: noNative || noNobody,
  }, async () => {
    const setting = { namespaces: "off", user: "same", isNative: true, landlockAbi: 1 } as const;
    assertContained(await runHostile(setting, "nobody"), 150);
  });

  test("gets nothing by native code as a user of its own", { skip: noNative || missing("user") }, async () => {
    const report = await runHostile({ namespaces: "off", user: "own", isNative: true, landlockAbi: 1 });
    assert.ok(report.layers.includes("user"));
    assertContained(report, 150);
  });

  for (const who of ["this", "nobody"] as const) {
    const skip = noNative || missing("namespaces") || (who === "nobody" && noNobody);
    test(`gets nothing by native code in namespaces, started as ${who} user`, { skip }, async () => {
      const report = await runHostile({ namespaces: "required", user: "own", isNative: true, landlockAbi: 1 }, who);
      assert.ok(report.layers.includes("namespaces"));
      assertContained(report, 150);
    });
  }

  test("gets nothing by native code where no namespaces can be made", { skip: noNative || noBare }, async () => {
    const report = await runHostile({ namespaces: "auto", user: "own", isNative: true, landlockAbi: 1 }, "bare");
    assert.deepEqual(report.layers, ["landlock", "seccomp", "limits"]);
    assertContained(report, 150);
  });

  test("gets nothing by JavaScript, where Node's permissions refuse first", async () => {
    const report = await runHostile({ namespaces: "off", user: "same", isNative: false });
    assertContained(report, 50);
    const denied = Object.values(report.outcomes).filter((outcome) => outcome === "refused ERR_ACCESS_DENIED").length;
    assert.ok(denied >= 40, `${denied} attempts were refused by Node`);
  });

  test("gets nothing by JavaScript in namespaces as an ordinary user", {
    skip: missing("namespaces") || noNobody,
  }, async () => {
    assertContained(await runHostile({ namespaces: "required", user: "own", isNative: false }, "nobody"), 50);
  });

  test("is ended by a system call of the x32 ABI", { skip: noNative }, async () => {
    const report = await runHostile({ namespaces: "off", user: "same", isNative: true, isX32: true });
    assert.equal(report.signal, "SIGSYS");
  });
});
