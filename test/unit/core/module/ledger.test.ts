import assert from "node:assert/strict";
import { test } from "node:test";
import { type Effect, Ledger } from "#core/module/ledger.ts";

function bench() {
  const seen: string[] = [];
  const faults: string[] = [];
  const ledger = new Ledger((label, error) => faults.push(`${label}: ${(error as Error).message}`));
  const effect = (kind: string, label: string): Effect => ({
    kind,
    label,
    activate: () => {
      seen.push(`+${label}`);
      return () => void seen.push(`-${label}`);
    },
  });
  return { seen, faults, ledger, effect };
}

const wait = async (work: unknown) => {
  await work;
  return true;
};

test("effects are collected until activation, and performed at once afterwards", () => {
  const { ledger, effect, seen } = bench();
  ledger.add(effect("hook", "a"));
  assert.deepEqual(seen, []);
  ledger.activate();
  assert.deepEqual(seen, ["+a"]);
  ledger.add(effect("hook", "b"));
  assert.deepEqual(seen, ["+a", "+b"]);
});

test("if one effect cannot be performed, those before it are undone, last first", () => {
  const { ledger, effect, seen } = bench();
  for (const label of ["a", "b"]) ledger.add(effect("item", label));
  ledger.add({
    kind: "item",
    label: "c",
    activate: () => {
      throw new Error("refused");
    },
  });
  assert.throws(() => ledger.activate(), /refused/);
  assert.deepEqual(seen, ["+a", "+b", "-b", "-a"]);
});

test("an effect that was never active is dropped without a release, and recorded releases are called", async () => {
  const { ledger, effect, seen } = bench();
  ledger.add(effect("hook", "staged"));
  ledger.recordRelease("release", "held", () => void seen.push("-held"));
  await ledger.close(wait);
  assert.deepEqual(seen, ["-held"]);
  assert.deepEqual(ledger.counts(), {});
});

test("take undoes only the named kinds, last first, and returns the promises", async () => {
  const { ledger, effect, seen } = bench();
  ledger.add(effect("hook", "a"));
  ledger.add(effect("timer", "b"));
  ledger.add({ kind: "item", label: "slow", activate: () => () => Promise.resolve("let go") });
  ledger.activate();
  const waiting = ledger.take("hook", "item");
  assert.equal(waiting.length, 1);
  assert.equal(await waiting[0], "let go");
  assert.deepEqual(seen, ["+a", "+b", "-a"]);
  assert.deepEqual(ledger.counts(), { timer: 1 });
});

test("a release that fails is reported with its label, and does not stop the others", async () => {
  const { ledger, effect, faults, seen } = bench();
  ledger.activate();
  ledger.add(effect("timer", "first"));
  ledger.recordRelease("release", "thrower", () => {
    throw new Error("no");
  });
  ledger.recordRelease("release", "rejecter", () => Promise.reject(new Error("never")));
  await ledger.close(wait);
  assert.deepEqual(faults, ["rejecter: never", "thrower: no"]);
  assert.deepEqual(seen, ["+first", "-first"]);
});

test("an entry that has ended by itself is not released", async () => {
  const { ledger, effect, seen } = bench();
  ledger.activate();
  ledger.add(effect("timer", "short")).forget();
  await ledger.close(wait);
  assert.deepEqual(seen, ["+short"]);
});

test("counts returns the number of effects of each kind", () => {
  const { ledger, effect } = bench();
  ledger.add(effect("hook", "a"));
  ledger.add(effect("hook", "b"));
  ledger.add(effect("item", "c"));
  assert.deepEqual(ledger.counts(), { hook: 2, item: 1 });
});

test("an effect can be undone by itself, once, before its module is unloaded", async () => {
  const { ledger, effect, seen } = bench();
  ledger.activate();
  const entry = ledger.add(effect("item", "a"));
  ledger.add(effect("item", "b"));
  entry.undo();
  entry.undo();
  assert.deepEqual([seen, ledger.counts()], [["+a", "+b", "-a"], { item: 1 }]);
  await ledger.close(wait);
  assert.deepEqual(seen, ["+a", "+b", "-a", "-b"]);
});
