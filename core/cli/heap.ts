/**
 * Tunes V8 for processes that serve. The heap grows to twice the live size instead of four times,
 * which saves a quarter of the peak memory and costs some per cent of CPU. The young generation is
 * limited to 32 MiB: V8's own limit is two or four times as high, and no faster. Objects of calls
 * are always allocated as young: otherwise V8 allocates them as old once many concurrent calls have
 * used theirs for long. Such an object retains everything of its call until the next full
 * collection, even when it is dead, which can double the cost of a small call.
 */
import { flushCompileCache } from "node:module";
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

/**
 * The V8 flags of a server. A program that runs only parts of a server can be started with the same
 * flags.
 */
export const heapFlags: readonly string[] = ["--heap-growing-percent=100", "--no-allocation-site-pretenuring"];
/**
 * V8 uses cached code only if the same flags are set as when it was compiled. After this delay the
 * code of the start is already cached (`config/build/program.mjs`).
 */
const LATE_MS = 6000;
/** Size of the young generation in bytes at which it stops growing. */
const MAX_YOUNG_BYTES = 32 * 1024 * 1024;

/** Starts the tuning after a delay; the returned function cancels it if it has not started. */
export function tuneHeap(): () => void {
  const timer = setTimeout(() => {
    flushCompileCache();
    for (const flag of heapFlags) setFlagsFromString(flag);
    boundYoungGeneration();
  }, LATE_MS).unref();
  return () => clearTimeout(timer);
}

/**
 * Limits the young generation. V8 takes the limit only when it starts, but reads the growth factor
 * after each collection.
 */
function boundYoungGeneration(): void {
  let factor = 2;
  const bound = () => {
    const bytes = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? 0;
    const wanted = bytes < MAX_YOUNG_BYTES ? 2 : 1;
    if (wanted !== factor) setFlagsFromString(`--semi-space-growth-factor=${wanted}`);
    factor = wanted;
  };
  new PerformanceObserver(bound).observe({ entryTypes: ["gc"] });
}
