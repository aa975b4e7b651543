import { homedir } from "node:os";
import { resolve } from "node:path";
import type { OptionDeclaration, OptionDeclarations, OptionType } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { nearest } from "../util/nearest.ts";
import { bytesOf } from "../util/size.ts";

/** A value that an option does not accept: its path, and what is allowed. */
export interface Problem {
  readonly path: string;
  readonly value: unknown;
  /** Ends the sentence "x is y, but ...". */
  readonly allowed: string;
}

/** Seconds of each unit of a period. */
const units: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

const refused = Symbol("refused");

type Reader = (value: unknown, directory: string) => unknown;

/**
 * One reader for each type: returns the converted value, or `refused`. Text forms are those of the
 * environment.
 */
const readers: Readonly<Record<OptionType, Reader>> = {
  string: readText,
  number: readNumber,
  integer: readInteger,
  boolean: (value) => {
    if (value === true || value === 1 || value === "true" || value === "1") return true;
    return value === false || value === 0 || value === "false" || value === "0" ? false : refused;
  },
  period: (value) => {
    const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|d|w)?$/.exec(String(value)) ?? [];
    return amount === undefined ? refused : Number(amount) * (units[unit] ?? 1);
  },
  size: (value) => readInteger(bytesOf(value)),
  url: (value) => {
    const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) ? value : refused;
  },
  path: (value, directory) =>
    typeof value === "string" && value !== "" ? resolve(directory, value.replace(/^~(?=[\\/]|$)/, homedir())) : refused,
  // Words such as 0.9 are numbers in YAML.
  enum: (value) => readText(typeof value === "number" ? String(value) : value),
  strings: (value) => readList(value, readText),
  port: readPort,
  ports: (value) => readList(value, readPort),
  object: (value) => (isObject(value) ? value : refused),
  any: (value) => value,
};

/** The type names that an option may be declared with. */
export const optionTypes: readonly string[] = Object.keys(readers);

/**
 * Returns what `convert` accepts, as the end of a sentence: "it must be an integer from 1 to 9
 * (bytes)".
 */
export function allowedText(declaration: OptionDeclaration): string {
  const { type, min, max, unit, values = [] } = declaration;
  const nouns: Readonly<Record<OptionType, string>> = {
    string: "text",
    number: "a number",
    integer: "an integer",
    boolean: "true or false",
    period: 'a number of seconds or text such as "90s", "10m", "2h", "1d"',
    size: 'a number of bytes or text such as "10MB" or "1GiB"',
    url: 'a URL such as "https://www.example.org/"',
    path: "the path of a file or folder",
    enum: `one of ${values.join(", ")}`,
    strings: "a list of texts",
    port: "a port from 1 to 65535, or 0 for none",
    ports: "a list of ports from 0 to 65535",
    object: "an object",
    any: "any value",
  };
  const isText = type === "period" || type === "size";
  const bounds = [
    min === undefined ? "" : ` from ${min}`,
    max === undefined ? "" : `${min === undefined ? " up" : ""} to ${max}`,
    unit === undefined || isText ? "" : ` (${unit})`,
  ].join("");
  return `${nouns[type]}${isText && bounds !== "" ? "," : ""}${bounds}`;
}

/** For other types `allowedText` itself shows the form. */
const shownByExample: ReadonlySet<OptionType> = new Set(["string", "path", "strings", "object"]);

/** Returns an example in a form that can be copied into any config file. */
const exampleText = ({ type, example }: OptionDeclaration): string =>
  example !== undefined && shownByExample.has(type) ? `, such as ${JSON.stringify(example)}` : "";

/**
 * Converts an option's value as declared: parses text forms, makes a single value a list, resolves
 * relative paths from `directory`, converts periods to seconds and sizes to bytes.
 * @throws {ModhostError} OPTION_INVALID naming the option, the value and what is allowed
 */
export function convert(declaration: OptionDeclaration, name: string, value: unknown, directory: string): unknown {
  const problems: Problem[] = [];
  const converted = convertInto(problems, declaration, name, value, directory);
  const [problem] = problems;
  if (problem === undefined) return converted;
  const { path, allowed } = problem;
  throw new ModhostError("OPTION_INVALID", { name: path, value: show(problem.value), allowed });
}

/** Works as `convert`, but adds problems to `problems` instead of throwing. */
export function convertInto(
  problems: Problem[],
  declaration: OptionDeclaration,
  path: string,
  value: unknown,
  directory: string,
): unknown {
  const converted = readers[declaration.type](value, directory);
  if (converted === refused || !inBounds(declaration, converted)) {
    const shown = hasSecret(declaration) ? SECRET : value;
    const example = converted === refused ? exampleText(declaration) : "";
    problems.push({ path, value: shown, allowed: `it must be ${allowedText(declaration)}${example}` });
    return undefined;
  }
  const { fields, entries } = declaration;
  if (!isObject(converted)) return converted;
  if (fields !== undefined) return fieldsInto(problems, fields, path, converted, directory);
  if (entries === undefined) return converted;
  return mapObject(converted, (entry, key) => {
    const at = `${path}.${key}`;
    if (isObject(entry)) return fieldsInto(problems, entries, at, entry, directory);
    const shown = hasSecret(declaration) ? SECRET : entry;
    problems.push({ path: at, value: shown, allowed: `it must be an object with ${Object.keys(entries).join(", ")}` });
    return undefined;
  });
}

function fieldsInto(
  problems: Problem[],
  fields: OptionDeclarations,
  path: string,
  given: Readonly<Record<string, unknown>>,
  directory: string,
): Record<string, unknown> {
  const names = Object.keys(fields).join(", ");
  for (const other of Object.keys(given).filter((other) => !Object.hasOwn(fields, other))) {
    const near = nearest(other, Object.keys(fields));
    const meant = near === undefined ? "" : `: is ${near} meant?`;
    problems.push({ path: `${path}.${other}`, value: given[other], allowed: `the fields are ${names}${meant}` });
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([field, inner]) => {
      const value = given[field] ?? inner.default;
      if (value === undefined && inner.required === false) return [];
      return [[field, convertInto(problems, inner, `${path}.${field}`, value, directory)]];
    }),
  );
}

/** Replaces a secret value in messages. */
export const SECRET = Symbol("secret");

/** Replaces the value in messages about a name that is itself wrong. */
export const SET = Symbol("set");

/** Returns the secret texts in the value of an option. */
export function secretsIn({ secret, entries, fields }: OptionDeclaration, value: unknown): string[] {
  if (secret === "keys" && isObject(value)) return Object.keys(value);
  if (secret !== undefined && secret !== false) return textsIn(value);
  if (!isObject(value)) return [];
  const within = (declared: OptionDeclarations, entry: unknown) =>
    isObject(entry) ? Object.entries(declared).flatMap(([field, inner]) => secretsIn(inner, entry[field])) : [];
  if (fields !== undefined) return within(fields, value);
  return entries === undefined ? [] : Object.values(value).flatMap((entry) => within(entries, entry));
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Formats a value for messages: short, on one line. */
export function show(value: unknown): string {
  if (value === SECRET) return "set to a secret";
  if (value === SET) return "set";
  // JSON cannot represent infinity.
  const json = typeof value === "number" ? undefined : JSON.stringify(value);
  const text = value === undefined ? "not set" : (json ?? String(value));
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/**
 * Returns the whole value of an option as JSON on one line; "(secret)" if it is a secret or has one
 * in its fields.
 */
export function valueText(declaration: OptionDeclaration, value: unknown): string {
  return hasSecret(declaration) ? "(secret)" : (JSON.stringify(value) ?? String(value));
}

/** Returns true if the option is a secret, or has one in its fields. */
export function hasSecret({ secret, entries = {}, fields = {} }: OptionDeclaration): boolean {
  return Boolean(secret) || [...Object.values(entries), ...Object.values(fields)].some(hasSecret);
}

/**
 * Returns the value of an option for a list of changes; "(secret)" if it is a secret or has one in
 * its fields.
 */
export function shownValue(declaration: OptionDeclaration | undefined, value: unknown): string {
  return declaration !== undefined && hasSecret(declaration) ? "(secret)" : show(value);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function mapObject(from: Record<string, unknown>, map: (value: unknown, key: string) => unknown) {
  return Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value, key)]));
}

function inBounds({ values, min, max, type }: OptionDeclaration, value: unknown): boolean {
  if (type === "enum") return (values ?? []).includes(value as string);
  return typeof value !== "number" || (value >= (min ?? -Infinity) && value <= (max ?? Infinity));
}

function readText(value: unknown): unknown {
  return typeof value === "string" ? value : refused;
}

function readNumber(value: unknown): unknown {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : refused;
}

function readInteger(value: unknown): unknown {
  const number = readNumber(value);
  return Number.isSafeInteger(number) ? number : refused;
}

function readPort(value: unknown): unknown {
  const port = readInteger(value);
  return typeof port === "number" && port >= 0 && port <= 65_535 ? port : refused;
}

function readList(value: unknown, read: (entry: unknown) => unknown): unknown {
  const list = (Array.isArray(value) ? value : [value]).map(read);
  return list.includes(refused) ? refused : list;
}
