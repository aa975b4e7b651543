import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Collects garbage, and waits for finalization callbacks. */
export async function collectGarbage(): Promise<void> {
  for (let pass = 0; pass < 4; pass += 1) {
    collect();
    await nextTurn();
  }
}

/** Resolves to the used heap in bytes after a garbage collection. */
export async function heapUsed(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
}
