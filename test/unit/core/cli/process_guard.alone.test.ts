/** Which calls of `process.kill` are taken for an end of the process. None of them is made here. */
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
    // In the end of the test they would be put back in the order in which they were made, and the
    // first one stay.
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

test("a domain of Node.js takes the errors of its own code, and is entered and left, whatever becomes of stacks", (t) => {
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
 * Runs an act as a module while the guard is in place. Returns the errors that are reported, with
 * the module of each.
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

test("a hook of async_hooks that throws is disabled and reported: Node.js alone would end the process", async () => {
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

test("an error of a thread is that of the module that has made the thread, though Node.js tells of it in no context", async () => {
  const reported = await reportedOf(() => {
    const thread = new EventEmitter();
    (process as EventEmitter).emit("worker", thread);
    accountFor("another").run(() => thread.emit("error", new Error("out of memory")));
  });
  assert.deepEqual(reported, [["careless", "out of memory"]]);
});
