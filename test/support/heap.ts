import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What is garbage by now is collected, with all that was waiting to be called about it. */
export async function collectGarbage(): Promise<void> {
  for (let pass = 0; pass < 4; pass += 1) {
    collect();
    await nextTurn();
  }
}

/** Bytes, after what is garbage by now has been collected. */
export async function heapUsed(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
}
