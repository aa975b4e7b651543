/** Which calls of `process.kill` are taken for an end of the process. None of them is made here. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { guardProcess } from "#core/cli/process_guard.ts";

function refusedBy(t: TestContext, call: () => unknown): string | undefined {
  const { mock } = t.mock.method(process, "kill", () => true);
  let refused: string | undefined;
  const guard = guardProcess({
    refuse: ({ act }) => {
      refused = act;
      return new Error("refused");
    },
  });
  try {
    call();
  } catch (error) {
    assert.equal((error as Error).message, "refused");
  } finally {
    guard.end();
    // In the end of the test they would be put back in the order in which they were made, and the first one stay.
    mock.restore();
  }
  return refused;
}

for (const [what, pid] of [
  ["by its number", process.pid],
  ["by its number as a text", String(process.pid)],
  ["with its group", 0],
  ["with its group, by the number of that", -process.pid],
] as const) {
  test(`a signal to the process ${what} is one that ends it`, (t) => {
    assert.equal(
      refusedBy(t, () => process.kill(pid as number)),
      `process.kill(${pid}, SIGTERM)`,
    );
  });
}

test("a look whether the process is there, and a signal to another one, end nothing", (t) => {
  assert.equal(
    refusedBy(t, () => process.kill(process.pid, 0)),
    undefined,
  );
  assert.equal(
    refusedBy(t, () => process.kill(0, 0)),
    undefined,
  );
  assert.equal(
    refusedBy(t, () => process.kill(process.ppid, "SIGTERM")),
    undefined,
  );
});
