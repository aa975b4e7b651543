/** JSON as the configuration file has it: Go's error texts, and Go's way of printing. */
import { NodeError } from "../../util/errors.ts";
import { JsonReader } from "../../util/go/json.ts";
import { goJson } from "../../util/go/text.ts";

/** An object of a JSON document. Its keys are data, so look them up with `Object.hasOwn`. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** @throws NodeError whose message is the bare reason */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reader = new JsonReader(Buffer.from(text), "document");
    while (reader.next() !== "end");
    throw error;
  }
}

/** The same value with the keys of every object in bytewise order, as Go writes maps. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(keysOf(value).map((key) => [key, sorted(value[key])]));
}

const keysOf = (value: JsonObject): string[] => Object.keys(value).sort(bytewise);

/** As their UTF-8 bytes compare. Nearly all keys are ASCII, whose order is that of their characters. */
function bytewise(one: string, other: string): number {
  if (isAscii(one) && isAscii(other)) return one < other ? -1 : one > other ? 1 : 0;
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text);

/** Indented by two spaces, without a newline at the end. `order`: keys as they are, or sorted bytewise. */
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

/** Who is asked for keys: the texts for those that are missing. */
export type ConfigRules = "0.9" | "0.43";

const missing: Readonly<Record<ConfigRules, (above: string, path: string) => string>> = {
  "0.9": (above) => `${above} key has no attributes`,
  "0.43": (_above, path) => `${path} not found`,
};

/** The value at a dotted path; keys are case-sensitive, lists have none. @throws NodeError with the bare reason */
export function getAt(document: unknown, path: string, rules: ConfigRules = "0.9"): unknown {
  const names = path.split(".");
  let value = document;
  for (const [at, name] of names.entries()) {
    const above = names.slice(0, at).join(".");
    if (!isObject(value)) throw new NodeError(`${above} key is not a map`);
    if (!Object.hasOwn(value, name)) throw new NodeError(missing[rules](above, names.slice(0, at + 1).join(".")));
    value = value[name];
  }
  return value;
}

/** The same document with a value at a dotted path; missing objects are made. @throws NodeError */
export function setAt(document: JsonObject, path: string, value: unknown): JsonObject {
  return put(document, path.split("."), 0, value) as JsonObject;
}

function put(document: unknown, names: readonly string[], at: number, value: unknown): unknown {
  if (at === names.length) return value;
  if (!isObject(document)) throw new NodeError(`${names.slice(0, at).join(".")} key is not a map`);
  const name = names[at] as string;
  const inner = Object.hasOwn(document, name) ? (document[name] ?? {}) : {};
  return { ...document, [name]: put(inner, names, at + 1, value) };
}

/** One object with what the other has: objects are joined, all else is replaced. */
export function joined(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const fields = Object.entries(after).map(([name, value]) => {
    return [name, Object.hasOwn(before, name) ? joined(before[name], value) : value] as const;
  });
  return { ...before, ...Object.fromEntries(fields) };
}
