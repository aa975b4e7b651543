/** Whether what hosts hold grows with the time. */
import type { Figures } from "./held.ts";

const MIB = 2 ** 20;

/**
 * Bytes by which memory may grow from one look to the next, in the second half of a run. Caches fill up and code is compiled in the
 * first one; then what is left of that is less, and a leak of 1 MiB from look to look is more, in objects and in buffers. `anonymous` is
 * for what neither counts, leaks of native code: gaps between what is in use still grow, by some 2 MB.
 */
export const ALLOWED_GROWTH: Figures = { heap: 0.5 * MIB, external: 0.75 * MIB, anonymous: 2.5 * MIB };
/** What grows by so many times as much in the whole half is told of however it grows: a leak in large steps, too. */
const ALLOWED_TOTAL = 6;
/** With fewer, the second half begins before caches are full. */
export const MIN_LOOKS = 8;

/**
 * By how much each may be more at the end than in the middle: segments wait to be merged, and what is open at a moment differs. `rss`
 * is told and not judged: what it has beyond `anonymous` are pages of LMDB, which are the system's.
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
 * The median of what each look has more than the one before: a leak is in all of them. A look that is high does not count, and neither
 * does a step, such as a pool that is filled, or memory in use that has come to lie behind what is free, which glibc cannot give back then.
 */
function grownMemory(who: string, looks: readonly Figures[]): string[] {
  if (looks.length < MIN_LOOKS) return [];
  const half = looks.slice(Math.floor(looks.length / 2));
  return Object.entries(ALLOWED_GROWTH).flatMap(([name, allowed]) => {
    if (half[0]?.[name] === undefined) return [];
    const values = half.map((look) => look[name] ?? 0);
    const slope = medianOf(values.slice(1).map((value, at) => value - (values[at] ?? 0)));
    const [first, last] = [Math.min(...values.slice(0, 2)), Math.min(...values.slice(-2))];
    return slope > allowed || last - first > ALLOWED_TOTAL * allowed
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

/** The lowest of the last third of all looks beside the lowest of the second. The first fills what is filled once. */
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
  /^(heap|external|rss|anonymous)$/.test(name) ? `${(value / MIB).toFixed(1)} MB` : String(value);

export const line = (figures: Figures): string =>
  Object.entries(figures)
    .map(([name, value]) => `${shown(name, value)} ${name}`)
    .join(", ");
