/** Checks the fields of providers at run time, for authors without a compiler's warnings. */
import type { HttpProvider, MiddlewareProvider } from "../../types.ts";
import { nearest } from "../../util/nearest.ts";

type Fields = Readonly<Record<string, readonly [isRight: (value: unknown) => boolean, form: string]>>;

const isText = (value: unknown) => typeof value === "string";
const isFlag = (value: unknown) => typeof value === "boolean";
const isTable = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
const isAny = () => true;
const isAuth = (value: unknown) => {
  if (value === "token") return true;
  if (!isTable(value)) return false;
  const { scope, need, ...others } = value as Record<string, unknown>;
  if (Object.keys(others).length > 0) return false;
  if (need !== undefined) return scope === undefined && isTable(need) && isText((need as { kind?: unknown }).kind);
  return scope === undefined || (isText(scope) && /^[\w.-]+$/.test(scope as string));
};

function isCors(value: unknown): boolean {
  if (!isTable(value)) return false;
  const { enabled, credentials, origins, headers } = value as Record<string, unknown>;
  const areOrigins = origins === undefined || origins === "*" || (Array.isArray(origins) && origins.every(isText));
  const areFlags = [enabled, credentials].every((flag) => flag === undefined || isFlag(flag));
  return areOrigins && areFlags && (headers === undefined || isTable(headers));
}

const appFields = {
  route: [isTable, 'a table of routes, { "GET /": handler }'],
  // Mounting checks the middleware and throws its own error.
  middleware: [isAny, ""],
  name: [isText, "text"],
  name_option: [isText, "the name of an option"],
  default_path: [isText, 'a path, such as "/" or "/shop"'],
  streaming_uploads: [isFlag, "true or false"],
  upload_pause: [(value) => Number.isFinite(value) && (value as number) >= 0, "a number of seconds"],
  relays: [isFlag, "true or false"],
  priority: [Number.isFinite, "a number"],
  auth: [isAuth, '"token", { scope: "name" }, or { need: { kind: "shop" } }'],
  cors: [
    isCors,
    'an object: { enabled: true, credentials: false, origins: ["https://a.example"], headers: { Authorization: true } }',
  ],
  default_headers: [isTable, 'an object: { content_type: "text/plain; charset=utf-8" }'],
  tunnels: [isFlag, "true or false"],
  claims: [(value) => typeof value === "function", "a function"],
  websocket: [isTable, "an object: { origins, protocols, max_message_bytes, compression }"],
} satisfies Record<keyof HttpProvider | keyof MiddlewareProvider, Fields[string]>;

const tables: Readonly<Record<string, readonly string[]>> = {
  cors: ["enabled", "credentials", "origins", "headers"],
  websocket: ["origins", "protocols", "max_message_bytes", "compression"],
};

/** Returns the faults in the values of a provider's fields, one sentence each. */
export function providerFaults(provider: object): string[] {
  return Object.entries(appFields as Fields).flatMap(([name, [isRight, form]]) => {
    const value = (provider as Record<string, unknown>)[name];
    return value === undefined || isRight(value) ? [] : [`${name} must be ${form}`];
  });
}

/** Returns a hint for each field of a provider that the host ignores. */
export function providerHints(provider: object): string[] {
  const hints = strange(provider, Object.keys(appFields), "the provider");
  for (const [name, known] of Object.entries(tables)) {
    const table = (provider as Record<string, unknown>)[name];
    if (isTable(table)) hints.push(...strange(table as object, known, `${name} of the provider`));
  }
  return hints;
}

function strange(table: object, known: readonly string[], where: string): string[] {
  return Object.keys(table).flatMap((name) => {
    if (known.includes(name)) return [];
    const meant = nearest(name, known);
    const end = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
    return [`${where} has the field ${name}, which means nothing here: ${end}`];
  });
}
