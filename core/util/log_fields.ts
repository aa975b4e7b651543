/**
 * The fields of a log line in the style of pino: in an object before the message, or bound to a
 * child.
 */
import { format } from "node:util";
import { configure } from "safe-stable-stringify";
import type { LogLevel, ModuleLog } from "../types.ts";
import { clipped, clippedMasked, MAX_TEXT } from "./clipped.ts";
import { readableThrown, reasonOf } from "./errors.ts";
import { stackOf } from "./stack.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/**
 * The content of a log call: fields, and a message that is formatted only when the line is written.
 */
export interface LogCall {
  readonly fields: LogFields | undefined;
  message(): string;
}

export const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Returns a log that passes each call to `write`, with the fields that are bound to the log. */
export function logBy(
  write: (level: LogLevel, values: readonly unknown[], bound: LogFields | undefined) => void,
  bound?: LogFields,
): ModuleLog {
  const log = (level: LogLevel, ...values: unknown[]) => write(level, values, bound);
  const methods = levels.map((level) => [level, (...values: unknown[]) => log(level, ...values)]);
  const child = (fields: LogFields) => logBy(write, { ...bound, ...fields });
  return Object.assign(log, Object.fromEntries(methods) as Record<LogLevel, ModuleLog["info"]>, { child });
}

const MAX_BREADTH = 100;
/**
 * pino has the same limits. Without them a request or socket that a module logs as a field would be
 * endless.
 */
const stringify = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: MAX_BREADTH });

/**
 * Maximum number of values in a line: an object that occurs at several positions is written at each
 * of them.
 */
const MAX_VALUES = 10_000;

/**
 * Field names that the log itself writes. A module's field of such a name gets an underscore, so
 * that no module can impersonate another.
 */
const own: ReadonlySet<string> = new Set(["n", "level", "time", "module", "host", "worker", "msg"]);

/**
 * Parses the values after the level: `("text %s", value)`, or `({ field: 1 }, "text %s", value)`,
 * or an error instead of the object.
 */
export function logCall([first, ...rest]: readonly unknown[]): LogCall {
  if (first instanceof Error) {
    const { length } = rest;
    return { fields: { err: first }, message: () => (length === 0 ? reasonOf(first) : format(...rest)) };
  }
  if (!hasFields(first)) return { fields: undefined, message: () => format(first, ...rest) };
  const { msg, ...fields } = first;
  const { length } = rest;
  const message = () => (length > 0 ? format(...rest) : typeof msg === "string" ? msg : "");
  return { fields: typeof msg === "string" ? fields : first, message };
}

/**
 * Returns true for objects with fields of their own. Lists, dates, maps and similar values are
 * formatted like texts.
 */
function hasFields(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) return false;
  const { length } = Object.keys(value);
  return length > 0 || Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Returns the fields as JSON: `{"user":7}`. Texts and names in it are masked, and a long one is
 * cut.
 */
export function fieldsJson(fields: LogFields, masked: (text: string) => string): string {
  try {
    const named = Object.entries(fields).map(([name, value]) => [own.has(name) ? `${name}_` : name, shown(value)]);
    let left = MAX_VALUES;
    const json =
      stringify(Object.fromEntries(named), (_name, value) => {
        left -= 1;
        if (left < 0) return undefined;
        return typeof value === "string" ? clippedMasked(value, masked) : withNamesMasked(value, masked);
      }) ?? "{}";
    return json.length <= MAX_TEXT ? json : JSON.stringify({ fields: clipped(json) });
  } catch (error) {
    // A getter or `toJSON` of a module can throw; the line is written all the same.
    return JSON.stringify({ fields: `cannot be read: ${reasonOf(error)}` });
  }
}

/** Masks the names of fields: those of query parameters, for example, are chosen by clients. */
function withNamesMasked(value: unknown, masked: (text: string) => string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) return value;
  const names = Object.keys(value);
  if (names.slice(0, MAX_BREADTH).every((name) => masked(name) === name)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [masked(name), one]));
}

/** Returns the fields of an error that JSON would not include. */
function shown(value: unknown): unknown {
  const error = readableThrown(value);
  if (!(error instanceof Error)) return value;
  const type = error.name === "Error" ? error.constructor.name : error.name;
  return { ...error, type, message: error.message, stack: stackOf(error) };
}
