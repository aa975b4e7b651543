/** Whether what hosts hold grows with the time. */
import type { Figures } from "./held.ts";

const MIB = 2 ** 20;

/**
 * By how much each may be more at the end than in the middle: caches fill up, segments wait to be merged, and what is open at a moment
 * differs.
 */
export const ALLOWED: Figures = {
  heap: 8 * MIB,
  external: 16 * MIB,
  rss: 48 * MIB,
  anonymous: 48 * MIB,
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

/** What grew beyond that: the lowest of the last third of all looks beside the lowest of the second. The first fills what is filled once. */
export function grown(who: string, looks: readonly Figures[]): string[] {
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
