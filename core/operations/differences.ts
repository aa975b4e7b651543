/** Which options differ between two configurations, and who has read them. */
import { isDeepStrictEqual } from "node:util";
import { type Config, shownValue } from "../config/index.ts";
import type { InstanceFacts } from "../module/instance.ts";

/** An option whose value differs, on one host or on the whole server ("*"). */
export interface Difference {
  readonly name: string;
  readonly host: string;
  readonly from: unknown;
  readonly to: unknown;
  /** The declaration, where anybody has declared it. */
  readonly applies: "live" | "start" | undefined;
  readonly owner: string | undefined;
}

/** Lists of their own tell what becomes of them. */
const unlisted: ReadonlySet<string> = new Set(["hosts"]);

/** What differs, in the order of the names; values are those that modules would read. */
export function differences(former: Config, next: Config): Difference[] {
  const both = new Set(next.hosts()).intersection(new Set(former.hosts()));
  const names = [...former.names().union(next.names())].filter((name) => !name.startsWith("$") && !unlisted.has(name));
  return names.sort().flatMap((name) => {
    const declaration = next.declarations().get(name);
    const about = { name, applies: declaration?.applies, owner: declaration?.owner };
    const [from, to] = [readFrom(former, name), readFrom(next, name)];
    const found: Difference[] = isDeepStrictEqual(from, to) ? [] : [{ ...about, host: "*", from, to }];
    for (const host of both) {
      const isOwn = former.written(name, host) !== undefined || next.written(name, host) !== undefined;
      const [was, is] = isOwn ? [readFrom(former, name, host), readFrom(next, name, host)] : [];
      if (!isDeepStrictEqual(was, is)) found.push({ ...about, host, from: was, to: is });
    }
    return found;
  });
}

/** A value that is wrong differs from every other. */
function readFrom(config: Config, name: string, host?: string): unknown {
  try {
    return config.shown(name, host);
  } catch {
    return { wrong: config.written(name, host) };
  }
}

/** Has the instance read a value that differs? */
export function isReader({ reads }: InstanceFacts, { name, host }: Difference, former: Config, next: Config): boolean {
  for (const asked of reads.get(name) ?? []) {
    if (asked === host) return true;
    // A host without a value of its own has that of the server.
    if (host === "*" && !isDeepStrictEqual(readFrom(former, name, asked), readFrom(next, name, asked))) return true;
  }
  return false;
}

/** Both values as text, without secrets. */
export function shown({ name, from, to }: Difference, former: Config, next: Config) {
  const declaration = next.declarations().get(name);
  const text = (value: unknown) =>
    value === undefined ? undefined : former.mask(next.mask(shownValue(declaration, value)));
  return { from: text(from), to: text(to) };
}
