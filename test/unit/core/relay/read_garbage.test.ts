/** The collection of what uploads leave in a worker. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

const MEBIBYTE = 2 ** 20;

async function readMuch(collects: boolean): Promise<{ readonly most: number; readonly isHidden: boolean }> {
  const worker = new Worker(new URL("read_garbage_program.ts", import.meta.url), { workerData: { collects } });
  const [report] = await once(worker, "message");
  await worker.terminate();
  return report;
}

test("memory that a worker has read and dropped is freed after some MiB, long before V8 would start a collection", async () => {
  const without = await readMuch(false);
  const { most, isHidden } = await readMuch(true);
  assert.ok(without.most > 40 * MEBIBYTE, `V8 let ${without.most} bytes accumulate`);
  assert.ok(most < 24 * MEBIBYTE, `${most} bytes were outside of the heap`);
  assert.ok(isHidden, "code of the module has a function for collections");
});
