import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortableSources } from "#node/util/async/abortable.ts";

const abortable = <T>(source: AsyncIterable<T>, signal?: AbortSignal) => new AbortableSources(signal).read(source);

/**
 * A source of these values and, after `letGo`, one more. `state.ended` is set when it has ended.
 */
function source(values: readonly number[]) {
  const gate = Promise.withResolvers<void>();
  const state = { ended: false, letGo: gate.resolve };
  const given = (async function* () {
    try {
      yield* values;
      await gate.promise;
      yield 0;
    } finally {
      state.ended = true;
    }
  })();
  return { state, given };
}

test("an aborted read rejects with the reason at once, and the source ends when it resumes", async () => {
  const { state, given } = source([1, 2]);
  const leaving = new AbortController();
  const wanted = abortable(given, leaving.signal);
  assert.deepEqual([(await wanted.next()).value, (await wanted.next()).value], [1, 2]);
  const waiting = wanted.next();
  leaving.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.equal(state.ended, false);
  state.letGo();
  assert.deepEqual(await given.next(), { done: true, value: undefined });
  assert.equal(state.ended, true);
});

test("a source that is aborted between two values ends without another read", async () => {
  const { state, given } = source([1, 2]);
  const leaving = new AbortController();
  const wanted = abortable(given, leaving.signal);
  await wanted.next();
  leaving.abort(new Error("enough"));
  await assert.rejects(wanted.next(), { message: "enough" });
  assert.equal(state.ended, true);
});

test("a consumer that breaks out of the loop waits for the end of the source", async () => {
  const { state, given } = source([1, 2]);
  for await (const _ of abortable(given)) break;
  assert.equal(state.ended, true);
});

test("reading throws the error of the source, and ends when the source ends", async () => {
  const failing = (async function* () {
    yield 1;
    throw new Error("torn");
  })();
  await assert.rejects(Array.fromAsync(abortable(failing, new AbortController().signal)), { message: "torn" });
  const { state, given } = source([1]);
  state.letGo();
  assert.deepEqual(await Array.fromAsync(abortable(given, new AbortController().signal)), [1, 0]);
});

test("one signal aborts the pending source of several, and a source that has ended still rejects with the reason", async () => {
  const leaving = new AbortController();
  const sources = new AbortableSources(leaving.signal);
  const first = source([1]);
  first.state.letGo();
  assert.deepEqual(await Array.fromAsync(sources.read(first.given)), [1, 0]);
  const second = source([]);
  const waiting = sources.read(second.given).next();
  leaving.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.deepEqual(await sources.read(first.given).next().catch(String), "Error: enough");
  sources.end();
});
