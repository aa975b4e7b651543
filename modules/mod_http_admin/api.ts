/** Responds to requests to the Admin API by the table of operations. */
import { httpMethods } from "../../core/http/index.ts";
import { actAs, HttpError, json, ModhostError, reasonOf } from "../../core/index.ts";
import type { Change, Handler, HttpEvent, Module, ResponseFields, RouteTable } from "../../core/types.ts";
import type { Authorize } from "./access.ts";
import { AdminError, codeOf, errors } from "./errors.ts";
import type { Streams } from "./events.ts";
import { readInput } from "./input.ts";
import type { Items, ServedOperation } from "./items.ts";
import type { OwnCall } from "./operations/operation.ts";
import type { Watched } from "./watched.ts";

export interface ApiDeps {
  readonly module: Module;
  readonly items: Items;
  readonly authorize: Authorize;
  readonly streams: Streams;
  readonly watched: Watched;
}

interface Match {
  readonly served: ServedOperation;
  readonly segments: Readonly<Record<string, string>>;
}

const statusOf = { done: 200, refused: 409, failed: 422 } as const satisfies Record<Change["result"], number>;

/** No cache may store a response, and no browser may guess another type. */
const headers = { cache_control: "no-store", x_content_type_options: "nosniff" };

/** The routes of the Admin API, below `/admin`. */
export function apiRoutes(deps: ApiDeps): RouteTable {
  const handler: Handler = (event, rest = "") => respond(deps, event, `/${rest}`);
  return Object.fromEntries(httpMethods.map((method) => [`${method} /api/*`, handler]));
}

function respond(deps: ApiDeps, event: HttpEvent, path: string): Promise<ResponseFields | undefined> {
  return withAdminErrors(deps.module, event, () => called(deps, event, path));
}

/**
 * Returns the result of `work`, or the response for the error that it throws. For an unexpected
 * error the log says more than the client is told.
 */
export async function withAdminErrors<T>(
  { log }: Module,
  { request, response }: HttpEvent,
  work: () => Promise<T>,
): Promise<T | ResponseFields> {
  // Headers of the host that let pages of other origins read responses do not apply to this API.
  response.headers = {};
  try {
    return await work();
  } catch (error) {
    if (error instanceof AdminError) return refusal(error, errors[error.code].status);
    if (error instanceof HttpError && error.expose)
      return refusal(new AdminError(codeOf(error.code), error.message), error.code);
    if (ModhostError.is(error) && error.expose)
      return refusal(new AdminError(codeOf(error.status), error.message), error.status);
    // When the client has disconnected, the error is only a consequence of that.
    if (!request.signal.aborted) log.error("%s %s failed: %s", request.method, request.path, reasonOf(error));
    return refusal(new AdminError("failed", "The server failed; its log has more"), errors.failed.status);
  }
}

async function called(deps: ApiDeps, event: HttpEvent, path: string): Promise<ResponseFields | undefined> {
  const { module, authorize, items, streams, watched } = deps;
  const { request } = event;
  const { by, scopes, viaSocket = false } = await authorize(request);
  const { served, segments } = find(items.operations(), request.method, path);
  const { operation, owner, work } = served;
  if (!scopes.has(operation.scope))
    throw new AdminError("forbidden", `${operation.name} needs the scope ${operation.scope}`);
  const input = await readInput(operation, segments, request);
  const value = await work.do(request.signal, (signal) => {
    const call = { input, by, scopes, viaSocket, server: module.server, event, signal };
    // Operations of this module also get the Admin API that they belong to.
    const own: OwnCall = { ...call, ...watched, module, items, streams };
    return actAs(owner, () => operation.run(owner.name === module.name ? own : call));
  });
  if (operation.isRaw === true) return value as ResponseFields | undefined;
  const status_code = operation.isChange === true ? statusOf[(value as Change).result] : 200;
  return json(value, { status_code, headers });
}

function refusal({ code, message, headers: more }: AdminError, status_code: number): ResponseFields {
  return json({ error: { code, message } }, { status_code, headers: { ...headers, ...more } });
}

/** @throws {AdminError} not_found, method_not_allowed */
function find(operations: readonly ServedOperation[], requested: string, path: string): Match {
  const there = operations.flatMap((served) => {
    const segments = segmentsOf(served.operation.path, path);
    return segments === undefined ? [] : [{ served, segments }];
  });
  const match = there.find(
    ({
      served: {
        operation: { method, isRaw },
      },
    }) => {
      return method === requested || (requested === "HEAD" && method === "GET" && isRaw !== true);
    },
  );
  if (match !== undefined) return match;
  if (there.length === 0)
    throw new AdminError("not_found", `There is no operation at ${path}: /admin/api/openapi.json lists all`);
  const allow = [...new Set(there.map(({ served }) => served.operation.method))].join(", ");
  throw new AdminError("method_not_allowed", `${path} takes ${allow}`, { allow });
}

/** Returns the values of `{name}` in a path that matches the pattern. */
function segmentsOf(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.split("/");
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
