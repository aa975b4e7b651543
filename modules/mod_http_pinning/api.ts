/** Routes of the pinning service API: `/pins` and `/pins/<requestid>`, relative to the app. */
import { type Node, retryAfter } from "modhost/node";
import type {
  Handler,
  HttpEvent,
  HttpRequest,
  ModuleLog,
  ResponseFields,
  RouteTable,
  TokenRefusal,
  Tokens,
} from "../../core/types.ts";
import { ApiFailure, failureResponse, json, refusalResponse, unavailableResponse } from "./failure.ts";
import { readFilter } from "./filter.ts";
import { readWish } from "./pin_object.ts";
import type { PinRequest } from "./pin_request.ts";
import type { Requests } from "./requests.ts";
import { anyUser } from "./scopes.ts";
import { type Users, userBy, userOf } from "./users.ts";

export interface ApiParts {
  readonly users: Users;
  /** Tokens of the server. */
  readonly tokens: Tokens;
  readonly log: ModuleLog;
  readonly node: Node;
  readonly requests: () => Requests;
  /** Schedules the work for a request. */
  readonly take: (request: PinRequest) => void;
}

interface Call {
  readonly event: HttpEvent;
  readonly user: string;
  /** The rest of the path after `/pins/`. */
  readonly id: string;
}

const MAX_DELEGATES = 20;

export function pinningRoutes(parts: ApiParts): RouteTable {
  const { log } = parts;
  const withFailures =
    (run: (call: Call) => Promise<ResponseFields>): Handler =>
    async (event, rest = "") => {
      try {
        const user = callerOf(parts, event.request);
        if (typeof user === "object") return refusalResponse(user);
        if (user === undefined) throw new ApiFailure("UNAUTHORIZED", "The access token is missing or unknown");
        return await run({ event, user, id: rest });
      } catch (error) {
        if (error instanceof ApiFailure) return failureResponse(error);
        const wait = retryAfter(error);
        if (wait !== undefined) return unavailableResponse((error as Error).message, wait);
        log.error("request %s failed: %s", event.request.id, error instanceof Error ? error.stack : error);
        return failureResponse(
          new ApiFailure("INTERNAL_SERVER_ERROR", `See the log for the request ${event.request.id}`),
        );
      }
    };
  const nothing = withFailures(() =>
    Promise.reject(new ApiFailure("NOT_FOUND", "This path does not exist: use /pins or /pins/<requestid>")),
  );

  async function shown(request: PinRequest, delegates?: readonly string[]) {
    const { id, status, created, wish, details } = request;
    return {
      requestid: id,
      status,
      created: new Date(created).toISOString(),
      pin: wish,
      delegates: delegates ?? (await ownAddresses(parts.node)),
      ...(details === undefined ? {} : { info: { status_details: details } }),
    };
  }

  async function add({ event, user }: Call, replaced?: string): Promise<ResponseFields> {
    const added = await parts
      .requests()
      .add(user, readWish(event.request.body), replaced, parts.node.lowLevel.shared?.session);
    const [request] = added;
    if (request === undefined) throw missing(replaced);
    for (const each of added) parts.take(each);
    return json(202, await shown(request));
  }

  return {
    "GET /pins": withFailures(async ({ event, user }) => {
      const { count, results } = await parts.requests().list(user, readFilter(event.request.url.query ?? ""));
      const delegates = await ownAddresses(parts.node);
      return json(200, { count, results: await Promise.all(results.map((request) => shown(request, delegates))) });
    }),
    "POST /pins": withFailures((call) => add(call)),
    "GET /pins/*": withFailures(async ({ user, id }) => {
      const request = await parts.requests().get(user, id);
      if (request === undefined) throw missing(id);
      return json(200, await shown(request));
    }),
    "POST /pins/*": withFailures((call) => add(call, call.id)),
    "DELETE /pins/*": withFailures(async ({ user, id }) => {
      const left = await parts.requests().leave(user, id);
      if (left === undefined) throw missing(id);
      parts.take(left);
      return { status_code: 202, body: "" };
    }),
    "GET /*": nothing,
    "POST /*": nothing,
    "DELETE /*": nothing,
  };
}

/** Returns the calling user; undefined for an unknown token. */
function callerOf({ users, tokens }: ApiParts, request: HttpRequest): string | TokenRefusal | undefined {
  const own = userBy(request.header("authorization"), users);
  const token = own === undefined ? tokens.identify(request) : undefined;
  if (token === undefined) return own;
  if ("status" in token) return token;
  return token.allows(anyUser) ? userOf(token) : tokens.lacks(token, anyUser);
}

const missing = (id: string | undefined) => new ApiFailure("NOT_FOUND", `There is no pin request ${id}`);

/**
 * Resolves to the addresses that clients should connect to; empty while the node has no network.
 */
async function ownAddresses(node: Node): Promise<readonly string[]> {
  const { addresses } = await node.id();
  return (addresses ?? []).slice(0, MAX_DELEGATES).map(String);
}
