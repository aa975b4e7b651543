/** Decides whether resources of hosts grow with time. */
import type { Usage } from "./usage.ts";

const MIB = 2 ** 20;

/**
 * Bytes by which memory may grow in the last two thirds of a run: between two looks, and in total,
 * for a leak in large steps. In the first third caches fill up and code is compiled. The rest
 * of that later is less than a leak of 1 MiB per look, whether in objects, in buffers or in native
 * code. Native memory has steps of up to 8 MB without a leak, after a burst: gaps between used
 * memory. `rss` and `anonymous` are reported but not judged: they are the sum of the others, and of
 * pages of LMDB, which belong to the system.
 */
const ALLOWED_GROWTH: Readonly<Record<string, { readonly each: number; readonly total: number }>> = {
  heap: { each: 0.5 * MIB, total: 3 * MIB },
  external: { each: 0.75 * MIB, total: 4.5 * MIB },
  native: { each: 0.8 * MIB, total: 12 * MIB },
};
/** With fewer looks, the second third would begin before caches are full. */
export const MIN_LOOKS = 8;

/**
 * How much higher each count may be at the end than in the middle: segments wait to be merged, and
 * the number of open resources varies.
 */
export const ALLOWED: Usage = {
  timers: 6,
  sockets: 6,
  /** A few more than the maximum number of connections to the object store. */
  "open sockets": 40,
  descriptors: 8,
  "cached files": 120,
  connections: 2,
  "rows of log": 1000,
  metadata: 40,
  "rows of segments": 80,
  "rows of removals": 120,
  "rows of doomed": 200,
  "rows of sessions": 3,
  "rows of locks": 0,
  objects: 500,
  uploads: 0,
};

/** Returns what grew beyond that. */
export const grown = (who: string, looks: readonly Usage[]): string[] => [
  ...grownMemory(who, looks),
  ...grownCounts(who, looks),
];

/**
 * Uses the median of the differences between two looks: a leak is in all of them. One high look
 * does not count, and neither does one step, such as a pool that is filled.
 */
function grownMemory(who: string, looks: readonly Usage[]): string[] {
  if (looks.length < MIN_LOOKS) return [];
  const later = looks.slice(Math.floor(looks.length / 3));
  return Object.entries(ALLOWED_GROWTH).flatMap(([name, { each, total }]) => {
    if (later[0]?.[name] === undefined) return [];
    const values = later.map((look) => look[name] ?? 0);
    const slope = medianOf(values.slice(1).map((value, at) => value - (values[at] ?? 0)));
    const first = Math.min(...values.slice(0, 2));
    const last = Math.min(...values.slice(-2));
    return slope > each || last - first > total
      ? [
          `${who}: ${name} grew from ${shown(name, first)} to ${shown(name, last)}, mostly by ${shown(name, slope)} a look`,
        ]
      : [];
  });
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/**
 * Compares the minimum of the last third of all looks with that of the second third. In the first
 * third, everything that fills up once does so.
 */
function grownCounts(who: string, looks: readonly Usage[]): string[] {
  const third = Math.floor(looks.length / 3);
  if (third === 0) return [];
  const lowest = (some: readonly Usage[], name: string) => Math.min(...some.map((look) => look[name] ?? 0));
  return Object.entries(ALLOWED).flatMap(([name, allowed]) => {
    if (looks[0]?.[name] === undefined) return [];
    const before = lowest(looks.slice(third, 2 * third), name);
    const after = lowest(looks.slice(-third), name);
    return after - before > allowed
      ? [`${who}: ${name} grew from ${shown(name, before)} to ${shown(name, after)}`]
      : [];
  });
}

export const shown = (name: string, value: number): string =>
  /^(heap|external|native|rss|anonymous)$/.test(name) ? `${(value / MIB).toFixed(1)} MB` : String(value);

export const line = (usage: Usage): string =>
  Object.entries(usage)
    .map(([name, value]) => `${shown(name, value)} ${name}`)
    .join(", ");
