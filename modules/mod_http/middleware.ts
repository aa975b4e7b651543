/**
 * The option `http_middleware`: lets operators run middleware before apps without writing a module.
 */
import type Koa from "koa";
import { type Account, accountFor } from "../../core/http/index.ts";
import { invalidOption, ModhostError, reasonOf } from "../../core/index.ts";
import type { HttpMiddleware, MiddlewareFunction, Module } from "../../core/types.ts";

const option = "http_middleware";

/** One entry of the option. */
interface Entry {
  /**
   * A package or file whose export makes the middleware. In a configuration that is code, it can be
   * the middleware itself.
   */
  readonly use: string | MiddlewareFunction;
  /** Name of the export: "default", or a path such as "RateLimit.middleware". */
  readonly export?: string;
  /** The first argument of the export. */
  readonly options?: unknown;
  /**
   * Whether the Koa application is passed as the second argument. Most packages that have a second
   * parameter use it for something else.
   */
  readonly application?: boolean;
  readonly name?: string;
  readonly order?: number;
  readonly apps?: readonly string[];
}

const fields: Readonly<Record<string, { readonly isRight: (value: unknown) => boolean; readonly allowed: string }>> = {
  use: { isRight: (value) => typeof value === "string" || typeof value === "function", allowed: "a package or a path" },
  export: { isRight: isText, allowed: "the name of an export" },
  options: { isRight: () => true, allowed: "" },
  application: { isRight: (value) => typeof value === "boolean", allowed: "true or false" },
  name: { isRight: isText, allowed: "a name" },
  order: { isRight: (value) => Number.isFinite(value), allowed: "a number" },
  apps: { isRight: (value) => Array.isArray(value) && value.every(isText), allowed: "a list of names of apps" },
};

export interface Configured {
  readonly provided: HttpMiddleware;
  readonly account: Account;
}

/**
 * Imports and creates the middleware in the order of the option. @throws {ModhostError}
 * OPTION_INVALID, because a server must not start without middleware that its operator has
 * configured
 */
export async function configuredMiddleware(module: Module, koa: Koa): Promise<Configured[]> {
  const given = module.get_option<unknown>(option) ?? [];
  const list = Array.isArray(given) ? given : [given];
  return await Promise.all(list.map((entry, at) => middlewareOf(module, koa, checked(entry, `${option}[${at}]`), at)));
}

async function middlewareOf(module: Module, koa: Koa, entry: Entry, at: number): Promise<Configured> {
  const { use, name, order, apps } = entry;
  const optionPath = `${option}[${at}]`;
  const shown = name ?? (typeof use === "string" ? use : undefined);
  // Later failures are attributed to the middleware and not to the module that serves all apps.
  const account = accountFor(`${option} ${shown ?? optionPath}`);
  const middleware =
    typeof use === "function" ? use : await account.run(() => made(module, koa, { ...entry, use }, optionPath));
  const provided = {
    middleware,
    ...(shown === undefined ? {} : { name: shown }),
    ...(order === undefined ? {} : { order }),
    ...(apps === undefined ? {} : { apps }),
  };
  return { provided, account };
}

/** Calls the export with its options. Most packages export such a factory. */
async function made(
  module: Module,
  koa: Koa,
  { use, export: path = "default", options, application }: Entry & { readonly use: string },
  optionPath: string,
): Promise<HttpMiddleware["middleware"]> {
  const invalid = (allowed: string, cause?: unknown) =>
    new ModhostError("OPTION_INVALID", { name: optionPath, value: use, allowed }, cause === undefined ? {} : { cause });
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
    middleware = await (application === true ? make(options, koa) : make(options));
  } catch (error) {
    throw invalid(`making the middleware failed: ${reasonOf(error)}`, error);
  }
  const isMiddleware = [middleware].flat().every((one) => typeof one === "function");
  if (!isMiddleware) throw invalid(`what it exports as ${path} makes no Koa middleware when it is called`);
  return middleware as HttpMiddleware["middleware"];
}

/**
 * Follows a path of names through the imported module. A CommonJS module that was compiled from ES
 * modules has its default export one level deeper.
 */
function exportOf(exported: Record<string, unknown>, path: string): unknown {
  const main = exported.default;
  if (path === "default") return typeof main === "function" ? main : (main as Record<string, unknown>)?.default;
  const follow = (from: unknown) =>
    path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], from);
  return follow(exported) ?? follow(main);
}

/** @throws {ModhostError} OPTION_INVALID */
function checked(entry: unknown, optionPath: string): Entry {
  const values = (typeof entry === "string" || typeof entry === "function" ? { use: entry } : entry) as object;
  if (typeof values !== "object" || values === null) {
    throw invalidOption(optionPath, entry, "it must be a package, a path or { use, options, order, apps }");
  }
  for (const [name, value] of Object.entries({ use: undefined, ...values })) {
    const field = fields[name];
    if (field === undefined)
      throw invalidOption(`${optionPath}.${name}`, value, `the fields are ${Object.keys(fields).join(", ")}`);
    const isMissing = value === undefined && name !== "use";
    if (!isMissing && !field.isRight(value))
      throw invalidOption(`${optionPath}.${name}`, value, `it must be ${field.allowed}`);
  }
  return values as Entry;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
