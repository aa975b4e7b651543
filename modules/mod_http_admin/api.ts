/** Answers requests to the Admin API by the table of operations. */
import { httpMethods } from "../../core/http/index.ts";
import { json, reasonOf } from "../../core/index.ts";
import type { Change, Handler, HttpEvent, Module, ResponseFields, RouteTable } from "../../core/types.ts";
import type { Authorize } from "./access.ts";
import { AdminError, errors } from "./errors.ts";
import type { Streams } from "./events.ts";
import { readInput } from "./input.ts";
import type { AnyOperation } from "./operations/operation.ts";

export interface ApiDeps {
  readonly module: Module;
  readonly operations: readonly AnyOperation[];
  readonly authorize: Authorize;
  readonly streams: Streams;
}

interface Match {
  readonly operation: AnyOperation;
  readonly segments: Readonly<Record<string, string>>;
}

const statusOf = { done: 200, refused: 409, failed: 422 } as const satisfies Record<Change["result"], number>;

/** Nothing of it is kept by anybody between, nor taken for anything else. */
const headers = { cache_control: "no-store", x_content_type_options: "nosniff" };

/** The routes of the Admin API, below `/admin`. */
export function apiRoutes(deps: ApiDeps): RouteTable {
  const handler: Handler = (event, rest = "") => answer(deps, event, `/${rest}`);
  return Object.fromEntries(httpMethods.map((method) => [`${method} /api/*`, handler]));
}

async function answer(deps: ApiDeps, event: HttpEvent, path: string): Promise<ResponseFields | undefined> {
  // Headers of the host that let pages of other origins read answers are not for this API.
  event.response.headers = {};
  try {
    return await called(deps, event, path);
  } catch (error) {
    if (error instanceof AdminError) return refusal(error);
    deps.module.log.error("%s %s failed: %s", event.request.method, path, reasonOf(error));
    return refusal(new AdminError("failed", "The server failed; its log has more"));
  }
}

async function called(deps: ApiDeps, event: HttpEvent, path: string): Promise<ResponseFields | undefined> {
  const { module, authorize, operations, streams } = deps;
  const { request } = event;
  const { by, scopes } = await authorize(request);
  const found = find(operations, request.method, path);
  const { operation, segments } = found;
  if (!scopes.has(operation.scope))
    throw new AdminError("forbidden", `${operation.name} needs the scope ${operation.scope}`);
  const input = await readInput(operation, segments, request);
  const value = await operation.run({ input, by, server: module.server, module, event, streams });
  if (operation.isRaw === true) return value as ResponseFields | undefined;
  const status_code = operation.isChange === true ? statusOf[(value as Change).result] : 200;
  return json(value, { status_code, headers });
}

function refusal({ code, message, headers: more }: AdminError): ResponseFields {
  return json({ error: { code, message } }, { status_code: errors[code].status, headers: { ...headers, ...more } });
}

/** @throws {AdminError} not_found, method_not_allowed */
function find(operations: readonly AnyOperation[], asked: string, path: string): Match {
  const there = operations.flatMap((operation) => {
    const segments = segmentsOf(operation.path, path);
    return segments === undefined ? [] : [{ operation, segments }];
  });
  const match = there.find(({ operation: { method, isRaw } }) => {
    return method === asked || (asked === "HEAD" && method === "GET" && isRaw !== true);
  });
  if (match !== undefined) return match;
  if (there.length === 0)
    throw new AdminError("not_found", `There is no operation at ${path}: /admin/api/openapi.json lists all`);
  const allow = [...new Set(there.map(({ operation }) => operation.method))].join(", ");
  throw new AdminError("method_not_allowed", `${path} takes ${allow}`, { allow });
}

/** The values of `{name}` in a path that has the form of the pattern. */
function segmentsOf(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return undefined;
  const values: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const segment = given[at] ?? "";
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name === undefined ? part !== segment : segment === "") return undefined;
    if (name !== undefined) values[name] = segment;
  }
  return values;
}
