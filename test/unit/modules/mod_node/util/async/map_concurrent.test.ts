import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { mapConcurrent } from "#node/util/async/map_concurrent.ts";

/** Work that ends or fails when the test says so. */
class Bench {
  readonly begun: number[] = [];
  readonly #ends = new Map<number, PromiseWithResolvers<number>>();

  readonly work = (value: number): Promise<number> => {
    this.begun.push(value);
    const end = Promise.withResolvers<number>();
    this.#ends.set(value, end);
    return end.promise;
  };

  end(...values: number[]): void {
    for (const value of values) this.#ends.get(value)?.resolve(value);
  }

  fail(value: number): void {
    this.#ends.get(value)?.reject(new Error(`no ${value}`));
  }
}

test("at most `atOnce` calls run at the same time, and results come in order", async () => {
  const bench = new Bench();
  const results = mapConcurrent([1, 2, 3, 4, 5], 3, bench.work);
  const first = results.next();
  await nextTurn();
  assert.deepEqual(bench.begun, [1, 2, 3]);
  bench.end(3, 2);
  await nextTurn();
  assert.deepEqual(bench.begun, [1, 2, 3]);
  bench.end(1);
  assert.equal((await first).value, 1);
  assert.equal((await results.next()).value, 2);
  const rest = Array.fromAsync(results);
  await nextTurn();
  bench.end(4, 5);
  await nextTurn();
  bench.end(5);
  assert.deepEqual(await rest, [3, 4, 5]);
});

test("a result that is ready is yielded before the source has its next value", async () => {
  const more = Promise.withResolvers<void>();
  async function* source() {
    yield 1;
    await more.promise;
    yield 2;
  }
  const results = mapConcurrent(source(), 8, async (value) => value * 10);
  assert.equal((await results.next()).value, 10);
  more.resolve();
  assert.deepEqual(await Array.fromAsync(results), [20]);
});

test("a failure is thrown after the results before it, once no call is running", async () => {
  const bench = new Bench();
  const results = mapConcurrent([1, 2, 3], 3, bench.work);
  const received: number[] = [];
  const reading = (async () => {
    for await (const value of results) received.push(value);
  })();
  let isOver = false;
  reading
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  await nextTurn();
  bench.fail(2);
  bench.end(1);
  await nextTurn();
  assert.deepEqual(received, [1]);
  assert.equal(isOver, false, "3 still runs");
  bench.end(3);
  await assert.rejects(reading, { message: "no 2" });
});

test("the error of a source is thrown after the results of its values", async () => {
  async function* source() {
    yield 1;
    yield 2;
    throw new Error("torn");
  }
  const received: number[] = [];
  const reading = (async () => {
    for await (const value of mapConcurrent(source(), 4, async (value) => value)) received.push(value);
  })();
  await assert.rejects(reading, { message: "torn" });
  assert.deepEqual(received, [1, 2]);
});

test("a consumer that leaves early ends the source, also while a value is pending", async () => {
  let isEnded = false;
  async function* numbers() {
    try {
      for (let value = 0; ; value += 1) yield value;
    } finally {
      isEnded = true;
    }
  }
  for await (const value of mapConcurrent(numbers(), 4, async (number) => number)) if (value === 10) break;
  await nextTurn();
  assert.ok(isEnded);

  async function* silent() {
    yield 1;
    await new Promise(() => {});
  }
  for await (const _ of mapConcurrent(silent(), 4, async (number) => number)) break;
});
