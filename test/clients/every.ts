/** Uses every method of a client library, following the table of methods. */
import { isUtf8 } from "node:buffer";
import { methods } from "./methods.ts";
import { Recording, streamed, typed } from "./recording.ts";
import type { Plain, Use } from "./use.ts";

type Method = (...args: unknown[]) => unknown;

/** Returns the functions of an object and of the objects in it, with names such as `files.read`. */
export function methodsOf(client: object, prefix = ""): Map<string, Method> {
  const found = new Map<string, Method>();
  for (const [name, value] of Object.entries(client) as [string, unknown][]) {
    if (typeof value === "function") found.set(prefix + name, value as Method);
    else if (typeof value === "object" && value !== null && !tables.has(prefix + name)) {
      for (const [below, method] of methodsOf(value, `${prefix}${name}.`)) found.set(below, method);
    }
  }
  return found;
}

/** Properties outside of the API: codecs of the libraries, and the parts of a node. */
const tables = new Set(["bases", "codecs", "hashers", "lowLevel"]);

export interface DriveReport {
  /** Number of methods that were used, and for each reason the number of unused ones. */
  readonly used: number;
  readonly others: Readonly<Record<string, number>>;
  /** Uses that failed, and names without a method. */
  readonly failures: readonly string[];
  readonly missing: readonly string[];
}

/** A client library, or a node in process. */
export interface Driven {
  readonly client: object;
  readonly inProcess: boolean;
  readonly stir: Use["stir"];
}

/**
 * Uses the methods with these names as the table says.
 * @throws Error for a name without a line
 */
export async function useMethods(
  { client, inProcess, stir }: Driven,
  names: ReadonlySet<string>,
  around: Pick<Use, "other" | "pinning">,
  recording = new Recording(),
): Promise<DriveReport> {
  const unknown = [...names].filter((name) => !(name in methods));
  if (unknown.length > 0) throw new Error(`the table has no line for ${unknown.join(", ")}`);
  const own = methodsOf(client);
  const missing = new Set<string>();
  const method = (name: string) => {
    const found = own.get(name);
    if (found === undefined) missing.add(name);
    return found ?? (() => Promise.reject(new Error(`the client has no method ${name}`)));
  };
  const use: Use = {
    ...around,
    stir,
    results: new Map(),
    async call(name, ...args) {
      const recorded = recording.begin(name, args);
      try {
        const given = await method(name)(...args);
        const values = isStream(given) ? await Array.fromAsync(given) : undefined;
        recorded.outcome = values === undefined ? { value: typed(given) } : streamed(values);
        return plain(values ?? given);
      } catch (error) {
        recorded.outcome = { error: (error as Error).message };
        throw error;
      }
    },
    async first(name, ...args) {
      for await (const value of (await method(name)(...args)) as AsyncIterable<unknown>) return plain(value);
      return undefined;
    },
  };
  const others: Record<string, number> = {};
  const failures: string[] = [];
  let used = 0;
  for (const [name, line] of Object.entries(methods)) {
    if (!names.has(name)) continue;
    if (typeof line === "string") others[line] = (others[line] ?? 0) + 1;
    else if (typeof line === "object" && inProcess) others[line.why] = (others[line.why] ?? 0) + 1;
    else {
      recording.line(name);
      const run = typeof line === "object" ? line.overHttp : line;
      await run(use).catch((error: Error) => failures.push(`${name}: ${error.message}`));
      used += 1;
    }
  }
  return { used, others, failures, missing: [...missing] };
}

const isStream = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

function plain(value: unknown): Plain {
  if (value instanceof Uint8Array) return Buffer.from(value).toString(isUtf8(value) ? "utf8" : "latin1");
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value as Plain;
  if (Array.isArray(value)) return value.map(plain);
  // CIDs, peer ids, multiaddresses and URLs of any library.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return String(value);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}
