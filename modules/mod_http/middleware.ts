/** The middleware of the option `http_middleware`: what operators put before apps without writing a module. */
import type Koa from "koa";
import { invalidOption, ModhostError, reasonOf } from "../../core/index.ts";
import type { HttpMiddleware, MiddlewareFunction, Module } from "../../core/types.ts";

const option = "http_middleware";

/** One entry of the option. */
interface Entry {
  /** A package or file whose export makes the middleware; in a configuration that is code, middleware itself. */
  readonly use: string | MiddlewareFunction;
  /** Which export: "default", or a path such as "RateLimit.middleware". */
  readonly export?: string;
  /** What the export is called with; the Koa application comes second. */
  readonly options?: unknown;
  readonly name?: string;
  readonly order?: number;
  readonly apps?: readonly string[];
}

const fields: Readonly<Record<string, { readonly isRight: (value: unknown) => boolean; readonly allowed: string }>> = {
  use: { isRight: (value) => typeof value === "string" || typeof value === "function", allowed: "a package or a path" },
  export: { isRight: isText, allowed: "the name of an export" },
  options: { isRight: () => true, allowed: "" },
  name: { isRight: isText, allowed: "a name" },
  order: { isRight: (value) => Number.isFinite(value), allowed: "a number" },
  apps: { isRight: (value) => Array.isArray(value) && value.every(isText), allowed: "a list of names of apps" },
};

/**
 * Imports and makes what the option lists, in its order.
 * @throws {ModhostError} OPTION_INVALID: no server starts without the middleware that its operator asked for
 */
export async function configuredMiddleware(module: Module, koa: Koa): Promise<HttpMiddleware[]> {
  const given = module.get_option<unknown>(option) ?? [];
  const list = Array.isArray(given) ? given : [given];
  return await Promise.all(list.map((entry, at) => middlewareOf(module, koa, checked(entry, `${option}[${at}]`), at)));
}

async function middlewareOf(module: Module, koa: Koa, entry: Entry, at: number): Promise<HttpMiddleware> {
  const { use, name, order, apps } = entry;
  const middleware = typeof use === "function" ? use : await made(module, koa, { ...entry, use }, `${option}[${at}]`);
  const shown = name ?? (typeof use === "string" ? use : undefined);
  return {
    middleware,
    ...(shown === undefined ? {} : { name: shown }),
    ...(order === undefined ? {} : { order }),
    ...(apps === undefined ? {} : { apps }),
  };
}

/** What the export gives when it is called with its options: most packages export such a function. */
async function made(
  module: Module,
  koa: Koa,
  { use, export: path = "default", options }: Entry & { readonly use: string },
  place: string,
): Promise<HttpMiddleware["middleware"]> {
  const invalid = (allowed: string, cause?: unknown) =>
    new ModhostError("OPTION_INVALID", { name: place, value: use, allowed }, cause === undefined ? {} : { cause });
  let exported: Record<string, unknown>;
  try {
    exported = await module.import_named(use);
  } catch (error) {
    throw invalid(`that cannot be imported: ${reasonOf(error)}`, error);
  }
  const make = exportOf(exported, path);
  if (typeof make !== "function") throw invalid(`it exports no function ${path}`);
  let middleware: unknown;
  try {
    middleware = await make(options, koa);
  } catch (error) {
    throw invalid(`making the middleware failed: ${reasonOf(error)}`, error);
  }
  const isMiddleware = [middleware].flat().every((one) => typeof one === "function");
  if (!isMiddleware) throw invalid(`what it exports as ${path} makes no Koa middleware when it is called`);
  return middleware as HttpMiddleware["middleware"];
}

/** Follows names through what was imported; CommonJS of translated sources has its default export one level down. */
function exportOf(exported: Record<string, unknown>, path: string): unknown {
  const main = exported.default;
  if (path === "default") return typeof main === "function" ? main : (main as Record<string, unknown>)?.default;
  const follow = (from: unknown) =>
    path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], from);
  return follow(exported) ?? follow(main);
}

/** @throws {ModhostError} OPTION_INVALID */
function checked(entry: unknown, place: string): Entry {
  const values = (typeof entry === "string" || typeof entry === "function" ? { use: entry } : entry) as object;
  if (typeof values !== "object" || values === null) {
    throw invalidOption(place, entry, "it must be a package, a path or { use, options, order, apps }");
  }
  for (const [name, value] of Object.entries({ use: undefined, ...values })) {
    const field = fields[name];
    if (field === undefined)
      throw invalidOption(`${place}.${name}`, value, `the fields are ${Object.keys(fields).join(", ")}`);
    const isMissing = value === undefined && name !== "use";
    if (!isMissing && !field.isRight(value))
      throw invalidOption(`${place}.${name}`, value, `it must be ${field.allowed}`);
  }
  return values as Entry;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
