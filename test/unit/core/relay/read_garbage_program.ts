/**
 * A worker that reads and drops 1 GiB, and posts the number of bytes outside of its heap that it
 * had at most.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { parentPort, workerData } from "node:worker_threads";
import { ReadGarbage } from "#core/relay/read_garbage.ts";

const READ_BYTES = 64 * 1024;
const READS = 16 * 1024;
/** Number of reads that handlers still use, as with some uploads at once. */
const IN_USE = 16;

let most = 0;
const garbage = new ReadGarbage();
const inUse: Buffer[] = [];
for (let count = 0; count < READS; count += 1) {
  inUse[count % IN_USE] = Buffer.allocUnsafeSlow(READ_BYTES);
  if (workerData.collects === true) garbage.add(READ_BYTES);
  most = Math.max(most, getHeapStatistics().external_memory);
  if (count % IN_USE === 0) await nextTurn();
}
parentPort?.postMessage({ most, isHidden: !("gc" in globalThis) });
