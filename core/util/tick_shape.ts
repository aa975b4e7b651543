import { executionAsyncResource } from "node:async_hooks";

let retained: object | undefined;

/**
 * Keeps one of the objects alive that Node creates for each `process.nextTick`, and with it their
 * hidden class. V8 drops the hidden class when no such object is alive during a full GC. Optimized
 * code then never recognizes the new class, and a call takes six times as long for the rest of the
 * process: a fifth of the CPU time of a small request. Call it before many ticks have run.
 */
export function keepTickShape(): void {
  if (retained !== undefined) return;
  retained = {};
  process.nextTick(() => {
    retained = executionAsyncResource();
  });
}

/** Returns the retained object; for tests. */
export const retainedTick = (): object | undefined => retained;
