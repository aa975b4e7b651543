/** Leaks on purpose, so that it can be seen that a leak is found. */
import { createSecretKey } from "node:crypto";

/**
 * In objects, in buffers outside of the heap, or in what native code has taken, of which V8 knows
 * nothing: the figure that tells of each.
 */
export const FIGURES = { heap: "heap", buffers: "external", native: "native" } as const;
export type Leak = keyof typeof FIGURES;

const VARIABLE = "TEST_LEAK";
const EVERY_MS = 1000;
const MINUTE_MS = 60_000;
const MIB = 2 ** 20;

/** Of a process that is to leak so many MiB in a minute. */
export const leaking = (leak: Leak, rate: number): NodeJS.ProcessEnv => ({ [VARIABLE]: `${leak} ${rate}` });

/** Gives what holds so many bytes. */
export const holding: Readonly<Record<Leak, (bytes: number) => unknown>> = {
  // Of numbers that are no integers an array has eight bytes for each.
  heap: (bytes) => Array.from({ length: bytes / 8 }, (_, at) => at + 0.5),
  buffers: (bytes) => Buffer.alloc(bytes, 1),
  // OpenSSL has a copy of its bytes.
  native: (bytes) => createSecretKey(Buffer.alloc(bytes, 1)),
};

/** Begins the leak that the environment asks for. */
export function plant(): void {
  const [leak, rate] = process.env[VARIABLE]?.split(" ") ?? [];
  if (leak === undefined) return;
  const kept: unknown[] = [];
  const begin = performance.now();
  let held = 0;
  setInterval(() => {
    const bytes = Math.floor(((performance.now() - begin) / MINUTE_MS) * Number(rate) * MIB) - held;
    held += bytes;
    kept.push(holding[leak as Leak](bytes));
  }, EVERY_MS).unref();
}
