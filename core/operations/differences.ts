/** Finds which options differ between two configurations, and which modules have read them. */
import { isDeepStrictEqual } from "node:util";
import { type Config, shownValue } from "../config/index.ts";
import type { InstanceFacts } from "../module/instance.ts";

/** An option whose value differs, on one host or on the whole server ("*"). */
export interface Difference {
  readonly name: string;
  readonly host: string;
  readonly from: unknown;
  readonly to: unknown;
  /** How a change applies, if the option is declared. */
  readonly applies: "live" | "start" | undefined;
  readonly owner: string | undefined;
}

/** Options that the plan lists separately. */
const unlisted: ReadonlySet<string> = new Set(["hosts"]);

/** Returns the differences in the order of the names; values are those that modules would read. */
export function differences(previous: Config, next: Config): Difference[] {
  const both = new Set(next.hosts()).intersection(new Set(previous.hosts()));
  const names = [...previous.names().union(next.names())].filter(
    (name) => !name.startsWith("$") && !unlisted.has(name),
  );
  return names.sort().flatMap((name) => {
    const declaration = next.declarations().get(name);
    const about = { name, applies: declaration?.applies, owner: declaration?.owner };
    const from = readFrom(previous, name);
    const to = readFrom(next, name);
    const found: Difference[] = isDeepStrictEqual(from, to) ? [] : [{ ...about, host: "*", from, to }];
    for (const host of both) {
      const isOwn = previous.written(name, host) !== undefined || next.written(name, host) !== undefined;
      const [was, is] = isOwn ? [readFrom(previous, name, host), readFrom(next, name, host)] : [];
      if (!isDeepStrictEqual(was, is)) found.push({ ...about, host, from: was, to: is });
    }
    return found;
  });
}

/**
 * Returns the value of an option. A wrong value becomes an object, so that it differs from every
 * other.
 */
function readFrom(config: Config, name: string, host?: string): unknown {
  try {
    return config.shown(name, host);
  } catch {
    return { wrong: config.written(name, host) };
  }
}

/** Returns true if the instance has read an option whose value differs. */
export function isReader(
  { reads }: InstanceFacts,
  { name, host }: Difference,
  previous: Config,
  next: Config,
): boolean {
  for (const readFor of reads.get(name) ?? []) {
    if (readFor === host) return true;
    // A host without a value of its own uses that of the server.
    if (host === "*" && !isDeepStrictEqual(readFrom(previous, name, readFor), readFrom(next, name, readFor)))
      return true;
  }
  return false;
}

/** Returns both values as text, without secrets. */
export function shown({ name, from, to }: Difference, previous: Config, next: Config) {
  const declaration = next.declarations().get(name);
  const text = (value: unknown) =>
    value === undefined ? undefined : previous.mask(next.mask(shownValue(declaration, value)));
  return { from: text(from), to: text(to) };
}
