/**
 * The form of everything that a worker or a sandbox sends. The code there may be hostile, so the
 * host uses nothing of it before a reader in this file has checked and copied it.
 */
import { isAbsolute, relative } from "node:path";
import { kindNames } from "../permissions/index.ts";
import {
  anything,
  finite,
  flag,
  list,
  oneOf,
  optional,
  type Reader,
  refuse,
  SchemaFault,
  shape,
  table,
  text,
} from "../relay/message_schema.ts";
import type {
  AppAuth,
  CorsSettings,
  LogLevel,
  ModulePermissions,
  NamedTokenScopes,
  OptionDeclaration,
  OptionDeclarations,
  PermissionKind,
  WebSocketSettings,
} from "../types.ts";
import { clipped } from "../util/clipped.ts";
import type { LogFields } from "../util/log_fields.ts";
import { printable } from "../util/text.ts";
import { MAX_DEPTH, type Shape } from "./exports.ts";
import type { Described, Loaded, ProvidedApp, SourceFile } from "./messages.ts";

const name = text(200);
const sentence = text(2000);
const origins: Reader<readonly string[] | "*"> = (value, at) => (value === "*" ? value : list(name, 1000)(value, at));

// ------------------------------------------------------------------------------------------------
// what the code declares

const types = [
  ...(["string", "number", "integer", "boolean", "period", "size", "url"] as const),
  ...(["path", "enum", "strings", "port", "ports", "object", "any"] as const),
] as const;

/** Depth of options in options. */
const MAX_OPTION_DEPTH = 5;

const number = finite(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);

const declarationsTo =
  (depth: number): Reader<OptionDeclarations> =>
  (value, at) => {
    if (depth === 0) refuse(at, `nested to a depth of at most ${MAX_OPTION_DEPTH}`);
    const inner = optional(declarationsTo(depth - 1));
    const declaration = shape<OptionDeclaration>({
      type: oneOf(types),
      default: anything as Reader<undefined>,
      min: optional(number) as Reader<number>,
      max: optional(number) as Reader<number>,
      values: optional(list(name, 1000)) as Reader<string[]>,
      unit: optional(name) as Reader<string>,
      example: anything as Reader<undefined>,
      describe: optional(sentence) as Reader<string>,
      per_host: optional(flag) as Reader<boolean>,
      required: optional(flag) as Reader<boolean>,
      secret: optional((one, path) => (one === "keys" ? one : flag(one, path))) as Reader<boolean | "keys">,
      applies: optional(oneOf(["live", "start"])) as Reader<"live" | "start">,
      protects: optional(flag) as Reader<boolean>,
      must_exist: optional(flag) as Reader<boolean>,
      keys: optional(oneOf(["apps"])) as Reader<"apps">,
      entries: inner as Reader<OptionDeclarations>,
      fields: inner as Reader<OptionDeclarations>,
    });
    return table(declaration, 500)(value, at);
  };

const described = shape<Described>({
  options: declarationsTo(MAX_OPTION_DEPTH),
  depends: list(name, 200),
  global: flag,
  shared: optional(flag) as Reader<boolean>,
  sticky: optional(oneOf(["address", "cookie"])),
  // `declaredPermissions` checks them further.
  permissions: table(anything, 20) as Reader<ModulePermissions>,
  hints: list(sentence, 500),
  files: optional(list(text(4096), 20_000)) as Reader<string[]>,
});

/**
 * Reads what the code of a file declares.
 * @throws {SchemaFault}
 */
export function readDescribed(value: unknown, { file, directory, root }: SourceFile): Described {
  const { files = [], hints, ...rest } = described(value, "the declaration");
  const folder = root ?? directory;
  const isOwn = (path: string) => {
    const inside = relative(folder, path);
    return path === file || (isAbsolute(path) && !inside.startsWith("..") && !isAbsolute(inside));
  };
  return { ...rest, hints: hints.map(printable), files: files.filter(isOwn) };
}

// ------------------------------------------------------------------------------------------------
// what an instance provides

/** Maximum number of fields of the exports, in all objects together. */
const MAX_EXPORTS = 10_000;

/**
 * Names that exports cannot have: an object with a function `then` is taken for a promise, and the
 * others lead to the prototypes of objects.
 */
const impossible: ReadonlySet<string> = new Set(["then", "__proto__", "constructor", "prototype"]);

/** Reads the form of exports. Functions get the paths at which they are. */
function readShape(value: unknown): Shape {
  let count = 0;
  const read = (one: unknown, path: readonly string[]): Shape => {
    const at = ["the exports", ...path].join(".");
    count += 1;
    if (count > MAX_EXPORTS) refuse("the exports", `an object of at most ${MAX_EXPORTS} fields`);
    const { kind } = shape<{ kind: string }>({ kind: name })(one, at);
    if (kind === "function") return { kind, path };
    if (kind === "value") return { kind, value: (one as { readonly value?: unknown }).value };
    if (kind !== "object") refuse(at, "a value, a function or an object");
    if (path.length > MAX_DEPTH) refuse(at, `nested to a depth of at most ${MAX_DEPTH}`);
    const fields = table(anything, MAX_EXPORTS)((one as { readonly fields?: unknown }).fields, at);
    const entries = Object.entries(fields).map(([field, inner]) => {
      if (impossible.has(field)) refuse(`${at}.${field}`, "a name that exports can have");
      return [field, read(inner, [...path, field])] as const;
    });
    return { kind, fields: Object.fromEntries(entries) };
  };
  return read(value, []);
}

const auth: Reader<AppAuth> = (value, at) => {
  if (value === "token") return value;
  const need = table<unknown>((one, path) => (isPlain(one) ? one : refuse(path, "a text, number or flag")), 20);
  const { scope, need: required } = shape<{ scope: string | undefined; need: Record<string, unknown> | undefined }>({
    scope: optional(text(200, /^[\w.-]+$/)),
    need: optional(need),
  })(value, at);
  if (required === undefined) return scope === undefined ? {} : { scope };
  return { need: { ...required, kind: name(required.kind, `${at}.need.kind`) } };
};
const isPlain = (value: unknown) => ["string", "number", "boolean", "undefined"].includes(typeof value);

const cors = shape<CorsSettings>({
  enabled: optional(flag) as Reader<boolean>,
  credentials: optional(flag) as Reader<boolean>,
  origins: optional(origins) as Reader<readonly string[] | "*">,
  headers: optional(table(flag, 200)) as Reader<Record<string, boolean>>,
});

const websocket = shape<WebSocketSettings>({
  origins: optional(origins) as Reader<readonly string[] | "*">,
  protocols: optional(list(name, 100)) as Reader<string[]>,
  max_message_bytes: optional(finite(0, 2 ** 32)) as Reader<number>,
  compression: optional(flag) as Reader<boolean>,
});

const app = shape<ProvidedApp>({
  host: text(300),
  keys: optional(list(text(4096), 20_000)),
  hasMiddleware: flag,
  settings: shape<ProvidedApp["settings"]>({
    name: optional(name) as Reader<string>,
    default_path: optional(text(1000)) as Reader<string>,
    priority: optional(finite(-Number.MAX_VALUE, Number.MAX_VALUE)) as Reader<number>,
    auth: optional(auth) as Reader<AppAuth>,
    cors: optional(cors) as Reader<CorsSettings>,
    default_headers: optional(
      shape<{ content_type?: string | undefined; x_content_type_options?: string | undefined }>({
        content_type: optional(name),
        x_content_type_options: optional(name),
      }),
    ) as Reader<object>,
    websocket: optional(websocket) as Reader<WebSocketSettings>,
    upload_pause: optional(finite(0, 86_400)) as Reader<number>,
  }),
});

const scopes = shape<NamedTokenScopes>({
  kind: name,
  help: sentence,
  accesses: optional(table(sentence, 1000)) as Reader<Record<string, string>>,
});

/** Maximum number of apps, of token scopes and of events that an instance may have. */
export const MAX_ITEMS = 1000;

export const eventName: Reader<string> = name;

/** Reads what an instance provides. @throws {SchemaFault} */
export const readLoaded: Reader<Loaded> = shape<Loaded>({
  exports: readShape,
  global: flag,
  serves: flag,
  apps: list(app, MAX_ITEMS),
  scopes: list(scopes, MAX_ITEMS),
  events: list(eventName, MAX_ITEMS),
  has: list(oneOf(["save", "restore"]), 2),
});

/** Reads an app that is provided later. @throws {SchemaFault} */
export const readApp: Reader<ProvidedApp> = app;

// ------------------------------------------------------------------------------------------------
// what it calls

const levels = oneOf(["debug", "info", "warn", "error"]);

/** Maximum number of lines in one message. */
const MAX_LINES = 1000;

export interface ReceivedLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields: LogFields;
  /** The length of the text and of the JSON of the fields. */
  readonly characters: number;
}

const line: Reader<ReceivedLine> = (value, at) => {
  const [level, message, fields] = list(anything, 3)(value, at);
  if (typeof message !== "string") refuse(at, "a line with a text");
  const shown = clipped(message);
  return {
    level: levels(level, `${at}.level`),
    text: shown,
    fields: fieldsIn(fields, `${at}.fields`),
    characters: shown.length + (typeof fields === "string" ? fields.length : 0),
  };
};

function fieldsIn(json: unknown, at: string): LogFields {
  if (json === undefined) return {};
  try {
    return table(anything, 1000)(JSON.parse(text(256 * 1024)(json, at)), at);
  } catch (error) {
    if (error instanceof SchemaFault) throw error;
    return refuse(at, "JSON");
  }
}

export const readLines: Reader<ReceivedLine[]> = list(line, MAX_LINES);

/** Reads a text for people, as one line. */
export const readNote: Reader<string> = (value, at) =>
  typeof value === "string" ? printable(clipped(value)) : refuse(at, "a text");

/** Reads the kind of a permission, the item of one, and the name of an option. */
export const readKind: Reader<PermissionKind> = oneOf(kindNames);
export const readItem: Reader<string> = text(4096);
export const readOption: Reader<string> = name;

/** Reads the path of a function, and the values to call it with. */
export const readPath: Reader<string[]> = list(name, MAX_DEPTH + 1);
export const readValues: Reader<unknown[]> = list(anything, 1000);
