/** Uses every method of a client library, by the table of methods. */
import { isUtf8 } from "node:buffer";
import { methods } from "./methods.ts";
import type { Plain, Use } from "./use.ts";

/** Functions of an object and of the objects in it, by their names from the outside in. */
export function methodsOf(client: object, prefix = ""): Map<string, (...args: unknown[]) => unknown> {
  const found = new Map<string, (...args: unknown[]) => unknown>();
  for (const [name, value] of Object.entries(client) as [string, unknown][]) {
    if (typeof value === "function") found.set(prefix + name, value as (...args: unknown[]) => unknown);
    else if (typeof value === "object" && value !== null && !tables.has(prefix + name)) {
      for (const [below, method] of methodsOf(value, `${prefix}${name}.`)) found.set(below, method);
    }
  }
  return found;
}

/** What is no part of the API: codecs that the libraries carry. */
const tables = new Set(["bases", "codecs", "hashers"]);

/** Throws when a use goes wrong or a method has no line; gives, at last, how many there are. */
export async function* everyMethod(
  client: object,
  around: Pick<Use, "other" | "pinning">,
): AsyncGenerator<string, void, undefined> {
  const own = methodsOf(client);
  const unknown = [...own.keys()].filter((name) => !(name in methods));
  if (unknown.length > 0) throw new Error(`there is no line for ${unknown.join(", ")}`);
  const method = (name: string) => own.get(name) ?? (() => Promise.reject(new Error(`there is no method ${name}`)));
  const use: Use = {
    ...around,
    kept: new Map(),
    call: async (name, ...args) => plain(await gathered(method(name)(...args))),
    async first(name, ...args) {
      for await (const value of method(name)(...args) as AsyncIterable<unknown>) return plain(value);
      return undefined;
    },
  };
  const counts: Record<string, number> = { used: 0 };
  const failures: string[] = [];
  for (const [name, line] of Object.entries(methods)) {
    if (!own.has(name)) continue;
    if (typeof line === "string") counts[line] = (counts[line] ?? 0) + 1;
    else {
      await line(use).catch((error: Error) => failures.push(`${name}: ${error.message}`));
      counts.used = (counts.used ?? 0) + 1;
    }
  }
  if (failures.length > 0) throw new Error(failures.join("\n"));
  const { used, ...others } = counts;
  yield `${own.size} methods: ${used} used, ${Object.entries(others)
    .map(([why, count]) => `${count} ${why}`)
    .join(", ")}`;
}

async function gathered(value: unknown): Promise<unknown> {
  const given = await value;
  const streams = typeof given === "object" && given !== null && Symbol.asyncIterator in given;
  return streams ? Array.fromAsync(given as AsyncIterable<unknown>) : given;
}

function plain(value: unknown): Plain {
  if (value instanceof Uint8Array) return Buffer.from(value).toString(isUtf8(value) ? "utf8" : "latin1");
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value as Plain;
  if (Array.isArray(value)) return value.map(plain);
  // CIDs, peer ids, multiaddresses and URLs of either library.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return String(value);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}
