import type { Look } from "./churn.ts";

/**
 * Bytes by which the heap may differ regardless of the time: caches fill up, and peers are
 * remembered.
 */
const tolerance = 8 * 1024 * 1024;

/**
 * Returns by how much the heap in the last third of all looks exceeds that in the second third. The
 * first third fills caches.
 */
export function heapGrowth(looks: readonly Look[]): { readonly grown: number; readonly allowed: number } {
  const third = Math.floor(looks.length / 3);
  if (third === 0) return { grown: 0, allowed: tolerance };
  const lowest = (some: readonly Look[]) => Math.min(...some.map(({ holdings }) => holdings.heap));
  return { grown: lowest(looks.slice(-third)) - lowest(looks.slice(third, 2 * third)), allowed: tolerance };
}
