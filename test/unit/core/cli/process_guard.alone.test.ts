/**
 * Which calls of `process.kill` count as ending the process. The tests make none of these calls.
 */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import domain from "node:domain";
import { EventEmitter, once } from "node:events";
import { type TestContext, test } from "node:test";
import { guardProcess } from "#core/cli/process_guard.ts";
import { accountFor, actingNow } from "#core/util/usage.ts";

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
    // If the test restored its mocks at its end, it would do so in the order of their creation, and
    // the first mock would stay.
    mock.restore();
  }
  return refused;
}

for (const [what, pid] of [
  ["by its number", process.pid],
  ["by its number as a text", String(process.pid)],
  ["with its group", 0],
  ["with its group, by the number of the group", -process.pid],
] as const) {
  test(`a signal to the process ${what} counts as ending it`, (t) => {
    assert.equal(
      refusedBy(t, () => process.kill(pid as number)),
      `process.kill(${pid}, SIGTERM)`,
    );
  });
}

test("a check whether the process exists, and a signal to another process, do not count as ending it", (t) => {
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

test("a domain of Node.js receives the errors of its own code, and can be entered and left, even if stacks are replaced", (t) => {
  const { prepareStackTrace } = Error;
  t.after(() => Object.assign(Error, { prepareStackTrace }));
  Error.prepareStackTrace = () => assert.fail("while a stack is prepared");
  const ofDomain = domain.create().on("error", () => undefined);
  const current = () => (process as { domain?: unknown }).domain;
  assert.equal(
    refusedBy(t, () => ofDomain.run(() => assert.equal(current(), ofDomain))),
    undefined,
  );
  assert.equal(current() ?? undefined, undefined);
});

/**
 * Runs an act as a module while the guard is in place. Returns the reported errors, with the module
 * of each.
 */
async function reportedOf(act: () => unknown, count = 1): Promise<unknown[]> {
  const reported: unknown[] = [];
  const heard = new EventEmitter();
  const guard = guardProcess({
    refuse: () => undefined,
    failed(error) {
      reported.push([actingNow()?.name, (error as Error).message]);
      if (reported.length === count) heard.emit("all");
    },
  });
  const all = once(heard, "all");
  try {
    accountFor("careless").run(act);
    await all;
  } finally {
    guard.end();
  }
  return reported;
}

test("a hook of async_hooks that throws is disabled and reported, where Node.js alone would end the process", async () => {
  const fail = () => {
    throw new Error("in a hook");
  };
  const reported = await reportedOf(() => {
    createHook({ init: fail, before: fail }).enable();
    setTimeout(() => undefined, 0);
    setTimeout(() => undefined, 0);
  });
  assert.deepEqual(reported, [["careless", "in a hook"]]);
});

test("an error of a thread is attributed to the module that created the thread, although Node.js reports it without a context", async () => {
  const reported = await reportedOf(() => {
    const thread = new EventEmitter();
    (process as EventEmitter).emit("worker", thread);
    accountFor("another").run(() => thread.emit("error", new Error("out of memory")));
  });
  assert.deepEqual(reported, [["careless", "out of memory"]]);
});
