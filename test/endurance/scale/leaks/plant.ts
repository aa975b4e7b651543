/** Leaks memory on purpose, to test that leaks are found. */
import { createSecretKey } from "node:crypto";

/**
 * Leaks in objects, in buffers outside of the heap, and in native code, which V8 does not know: the
 * metric that shows each of them.
 */
export const LEAK_METRICS = { heap: "heap", buffers: "external", native: "native" } as const;
export type Leak = keyof typeof LEAK_METRICS;

const VARIABLE = "TEST_LEAK";
const EVERY_MS = 1000;
const MINUTE_MS = 60_000;
const MIB = 2 ** 20;

/** Returns the environment of a process that leaks so many MiB per minute. */
export const leaking = (leak: Leak, rate: number): NodeJS.ProcessEnv => ({ [VARIABLE]: `${leak} ${rate}` });

/** Allocates so many bytes, and returns a value that retains them. */
export const holding: Readonly<Record<Leak, (bytes: number) => unknown>> = {
  // An array of non-integers has eight bytes for each number.
  heap: (bytes) => Array.from({ length: bytes / 8 }, (_, at) => at + 0.5),
  buffers: (bytes) => Buffer.alloc(bytes, 1),
  // OpenSSL makes a copy of the bytes.
  native: (bytes) => createSecretKey(Buffer.alloc(bytes, 1)),
};

/** Begins the leak that the environment requests. */
export function plant(): void {
  const [leak, rate] = process.env[VARIABLE]?.split(" ") ?? [];
  if (leak === undefined) return;
  const retained: unknown[] = [];
  const begin = performance.now();
  let leaked = 0;
  setInterval(() => {
    const bytes = Math.floor(((performance.now() - begin) / MINUTE_MS) * Number(rate) * MIB) - leaked;
    leaked += bytes;
    retained.push(holding[leak as Leak](bytes));
  }, EVERY_MS).unref();
}
