/** Whether what hosts hold grows with the time. */
import type { Figures } from "./held.ts";

const MIB = 2 ** 20;

/**
 * Bytes by which memory may grow in the last two thirds of a run: from one look to the next, and in
 * all of that, for a leak in large steps. Caches fill up and code is compiled in the first third;
 * then what is left of that is less, and a leak of 1 MiB from look to look is more, be it in
 * objects, in buffers or in native code. That has steps of up to 8 MB where nothing leaks, after a
 * rush: gaps between what is in use. `rss` and `anonymous` are told and not judged: they are the
 * sum of these, and of pages of LMDB, which are the system's.
 */
const ALLOWED_GROWTH: Readonly<Record<string, { readonly each: number; readonly total: number }>> = {
  heap: { each: 0.5 * MIB, total: 3 * MIB },
  external: { each: 0.75 * MIB, total: 4.5 * MIB },
  native: { each: 0.8 * MIB, total: 12 * MIB },
};
/** With fewer, the second third begins before caches are full. */
export const MIN_LOOKS = 8;

/**
 * By how much each may be more at the end than in the middle: segments wait to be merged, and what
 * is open at a moment differs.
 */
export const ALLOWED: Figures = {
  timers: 6,
  sockets: 6,
  /** As many as a host has at most to its object store, and some. */
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

/** What grew beyond that. */
export const grown = (who: string, looks: readonly Figures[]): string[] => [
  ...grownMemory(who, looks),
  ...grownCounts(who, looks),
];

/**
 * The median of what each look has more than the one before: a leak is in all of them. A look that
 * is high does not count, and neither does a step, such as a pool that is filled.
 */
function grownMemory(who: string, looks: readonly Figures[]): string[] {
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
 * The lowest of the last third of all looks beside the lowest of the second. The first fills what
 * is filled once.
 */
function grownCounts(who: string, looks: readonly Figures[]): string[] {
  const third = Math.floor(looks.length / 3);
  if (third === 0) return [];
  const lowest = (some: readonly Figures[], name: string) => Math.min(...some.map((look) => look[name] ?? 0));
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

export const line = (figures: Figures): string =>
  Object.entries(figures)
    .map(([name, value]) => `${shown(name, value)} ${name}`)
    .join(", ");
