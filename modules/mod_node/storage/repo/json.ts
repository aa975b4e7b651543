/** JSON as the configuration file uses it: with the error texts and the formatting of Go. */
import { failure } from "../../util/errors.ts";
import { JsonReader } from "../../util/go/json.ts";
import { goJson } from "../../util/go/text.ts";

/** An object of a JSON document. Its keys are data, so look them up with `Object.hasOwn`. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Parses JSON.
 * @throws NodeError whose message is only the reason
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reader = new JsonReader(Buffer.from(text), "document");
    while (reader.next() !== "end");
    throw error;
  }
}

/** Returns the value with the keys of every object in bytewise order, as Go writes maps. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(keysOf(value).map((key) => [key, sorted(value[key])]));
}

const keysOf = (value: JsonObject): string[] => Object.keys(value).sort(bytewise);

/**
 * Compares keys by their UTF-8 bytes. Nearly all keys are ASCII, for which comparing characters
 * gives the same order.
 */
function bytewise(one: string, other: string): number {
  if (isAscii(one) && isAscii(other)) return one < other ? -1 : one > other ? 1 : 0;
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text);

/**
 * Prints JSON with an indentation of two spaces and without a final newline. `order` says whether
 * keys keep their order or are sorted bytewise.
 */
export function printJson(value: unknown, order: "kept" | "sorted" = "sorted", indent = ""): string {
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return goJson(value);
  const deeper = `${indent}  `;
  const print = (inner: unknown) => printJson(inner, order, deeper);
  const parts = isList
    ? value.map(print)
    : (order === "kept" ? Object.keys(value) : keysOf(value)).map((key) => `${goJson(key)}: ${print(value[key])}`);
  const [open, close] = isList ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  return `${open}\n${parts.map((part) => deeper + part).join(",\n")}\n${indent}${close}`;
}

/** Selects the error texts for missing keys by version. */
export type ConfigRules = "0.9" | "0.43";

const missing: Readonly<Record<ConfigRules, (above: string, path: string) => string>> = {
  "0.9": (above) => `${above} key has no attributes`,
  "0.43": (_above, path) => `${path} not found`,
};

/**
 * Returns the value at a dotted path. Keys are case-sensitive; items of lists have no path.
 * @throws NodeError whose message is only the reason
 */
export function getAt(document: unknown, path: string, rules: ConfigRules = "0.9"): unknown {
  const names = path.split(".");
  let value = document;
  for (const [at, name] of names.entries()) {
    const above = names.slice(0, at).join(".");
    if (!isObject(value)) throw failure("CONFIG_KEY_NOT_FOUND", { reason: `${above} key is not a map` });
    if (!Object.hasOwn(value, name))
      throw failure("CONFIG_KEY_NOT_FOUND", { reason: missing[rules](above, names.slice(0, at + 1).join(".")) });
    value = value[name];
  }
  return value;
}

/**
 * Returns the document with a value at a dotted path. Missing objects are created.
 * @throws NodeError
 */
export function setAt(document: JsonObject, path: string, value: unknown): JsonObject {
  return put(document, path.split("."), 0, value) as JsonObject;
}

function put(document: unknown, names: readonly string[], at: number, value: unknown): unknown {
  if (at === names.length) return value;
  if (!isObject(document))
    throw failure("CONFIG_KEY_NOT_FOUND", { reason: `${names.slice(0, at).join(".")} key is not a map` });
  const name = names[at] as string;
  const inner = Object.hasOwn(document, name) ? (document[name] ?? {}) : {};
  return { ...document, [name]: put(inner, names, at + 1, value) };
}

/** Merges two objects recursively; other values are replaced. */
export function joined(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const fields = Object.entries(after).map(([name, value]) => {
    return [name, Object.hasOwn(before, name) ? joined(before[name], value) : value] as const;
  });
  return { ...before, ...Object.fromEntries(fields) };
}
