import type { Look } from "./churn.ts";

/**
 * Bytes by which the heap may differ whatever the time: caches that fill up, tables of peers that
 * are remembered.
 */
const tolerance = 8 * 1024 * 1024;

/**
 * By how much the heap of the last third of all looks is above that of the second: the first fills
 * what is filled once.
 */
export function heapGrowth(looks: readonly Look[]): { readonly grown: number; readonly allowed: number } {
  const third = Math.floor(looks.length / 3);
  if (third === 0) return { grown: 0, allowed: tolerance };
  const lowest = (some: readonly Look[]) => Math.min(...some.map(({ held }) => held.heap));
  return { grown: lowest(looks.slice(-third)) - lowest(looks.slice(third, 2 * third)), allowed: tolerance };
}
