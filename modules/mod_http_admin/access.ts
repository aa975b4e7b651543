/**
 * Decides who may call: callers of the socket, callers on this machine, and callers with a token.
 * Reads headers by their exact names.
 */
import {
  findToken,
  isSameOrigin,
  type KnownToken,
  readAuthorization,
  readTokens,
  type StrangerReason,
  strangerReason,
} from "../../core/http/index.ts";
import type { AdminScope, HttpRequest, Module, TokenRefusal } from "../../core/types.ts";
import { isOfBrowser, isTyped, type PageKeys } from "./dashboard/keys.ts";
import { AdminError, type AdminErrorCode } from "./errors.ts";
import { Peers } from "./peer.ts";

/** A caller that has access. */
export interface Visitor {
  /** Name of the caller in the record of changes. */
  readonly by: string;
  readonly viaSocket?: true;
  readonly scopes: ReadonlySet<AdminScope>;
}

/** @throws {AdminError} unauthorized, forbidden */
export type Authorize = (request: HttpRequest) => Visitor | Promise<Visitor>;

const everything: ReadonlySet<AdminScope> = new Set<AdminScope>(["read", "admin"]);

/** Only the user of this process and root can open the socket's file. */
export const throughSocket: Authorize = () => ({
  by: "admin socket",
  viaSocket: true,
  scopes: everything,
});

/** A token of the option `admin_tokens`. */
interface AdminToken extends KnownToken {
  readonly name: string | undefined;
  readonly scopes: ReadonlySet<AdminScope>;
}

/** Access through the TCP ports. */
export interface PortCallers {
  /** Authorizes a request at a port of the Admin API. */
  readonly authorize: Authorize;
  /**
   * Whether the caller needs no token: a program on this machine whose user may operate the server.
   */
  isLocal(request: HttpRequest): Promise<boolean>;
  /** Whether the browser has signed in with a token that is still known. */
  isSignedIn(request: HttpRequest): Promise<boolean>;
}

/** @throws {ModhostError} OPTION_INVALID */
export function throughPorts(module: Module, keys: () => Promise<PageKeys>): PortCallers {
  const tokens = tokensOf(module.get_option<unknown>("admin_tokens"));
  const fromHere = localCallers(module);
  const presented = (request: HttpRequest, secret: string | undefined) =>
    ofServer(module, request, secret) ?? withToken(secret, tokens);

  async function authorize(request: HttpRequest): Promise<Visitor> {
    assertOwnPage(request);
    if (request.header("authorization") !== undefined) return presented(request, bearerOf(request));
    const pages = await keys();
    const sessions = pages.sessions(request);
    for (const { token, identity } of sessions) {
      // The cookie alone proves nothing, because browsers send it to servers at other ports of this
      // host name, too.
      const visitor = pages.isGiven(request, identity) ? attempt(() => presented(request, token)) : undefined;
      if (visitor !== undefined) return visitor;
    }
    // The HTTPS port is for other machines. A caller that seems to be on this machine may come
    // through a relay.
    const here = request.secure ? Promise.reject(new AdminError("forbidden", overHttps)) : fromHere(request);
    const visitor = await here.catch((error: unknown) => {
      throw sessions.length > 0 && error instanceof AdminError ? pages.refusal() : error;
    });
    if (isOfBrowser(request) && !isTyped(request)) pages.assert(request, "local");
    return visitor;
  }

  return {
    authorize,
    isLocal: (request) => holds(fromHere(request)),
    async isSignedIn(request) {
      return (await keys())
        .sessions(request)
        .some(({ token }) => attempt(() => presented(request, token)) !== undefined);
    },
  };
}

async function holds(visitor: Promise<Visitor>): Promise<boolean> {
  try {
    await visitor;
    return true;
  } catch (error) {
    if (error instanceof AdminError) return false;
    throw error;
  }
}

/**
 * Returns undefined for a revoked or expired token: a caller who was signed in with it counts as
 * not signed in.
 */
function attempt(ask: () => Visitor): Visitor | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof AdminError && error.code === "unauthorized") return undefined;
    throw error;
  }
}

/**
 * Refuses pages of other origins, whatever credentials they have. They can neither read responses
 * nor trigger operations.
 */
export function assertOwnPage(request: HttpRequest): void {
  const { url, method } = request;
  const site = request.header("sec-fetch-site") ?? "none";
  const isOwn = site === "none" || site === "same-origin";
  if (!isOwn || !isSameOrigin(request, url.host ?? request.header("host")))
    throw new AdminError("forbidden", "Pages of other origins may not call the Admin API");
  if (method === "GET" || method === "HEAD") return;
  // Any page can send a form without a preflight request. A JSON body or this header makes the
  // browser ask for permission first.
  const isJson = /^application\/json\s*(?:;|$)/i.test(request.header("content-type") ?? "");
  if (!isJson && request.header("x-modhost-admin") === undefined) {
    const remedy = "send Content-Type: application/json, or the header X-Modhost-Admin: 1";
    throw new AdminError("forbidden", `A change must not look like a form: ${remedy}`);
  }
}

/**
 * Returns the caller with a token of the server; undefined when the request has no token. @throws
 * {AdminError}
 */
function ofServer({ tokens }: Module, request: HttpRequest, secret: string | undefined): Visitor | undefined {
  const found = tokens.identify(request, secret === undefined ? {} : { secret });
  if (found === undefined) return undefined;
  if ("status" in found) throw refusalOf(found);
  const scopes = [...everything].filter((access) => found.allows({ kind: "admin", access }));
  if (scopes.length === 0) throw refusalOf(tokens.lacks(found, { kind: "admin", access: "read" }));
  return { by: `token ${found.name}`, scopes: new Set(scopes) };
}

const codes = { 401: "unauthorized", 403: "forbidden", 429: "over_limit" } as const satisfies Record<
  TokenRefusal["status"],
  AdminErrorCode
>;

function refusalOf({ status, message, headers }: TokenRefusal): AdminError {
  return new AdminError(codes[status], message, headers);
}

export function bearerOf(request: HttpRequest): string | undefined {
  const { scheme, credentials } = readAuthorization(request.header("authorization")) ?? {};
  return scheme === "bearer" ? credentials : undefined;
}

function withToken(secret: string | undefined, tokens: readonly AdminToken[]): Visitor {
  const token = findToken(secret === undefined ? [] : [secret], tokens);
  if (token !== undefined) return { by: `token ${token.name ?? "without a name"}`, scopes: token.scopes };
  const remedy = "send Authorization: Bearer TOKEN, with a token from modhost token new";
  throw new AdminError("unauthorized", `This is not a token of the Admin API: ${remedy}`, {
    www_authenticate: "Bearer",
  });
}

const refusals: Readonly<Record<StrangerReason, string>> = {
  "other machine": "Calls from other machines need a token, see the option admin_tokens",
  proxy: "Calls through a proxy need a token, see the option admin_tokens",
  "foreign name":
    "Without a token, the Admin API is available only at localhost and at the names of the option admin_hosts",
};

const overHttps = "Calls over HTTPS need a token, see the option admin_tokens";
const nobody: ReadonlySet<string> = new Set();

/** Resolves to the caller when it needs no token, and throws an AdminError otherwise. */
function localCallers(module: Module): (request: HttpRequest) => Promise<Visitor> {
  const hosts = new Set((module.get_option_array("admin_hosts") ?? []).map((name) => name.toLowerCase()));
  const local = module.get_option_string("admin_local") ?? "same_user";
  const others = () => (module.server.status().processes ?? []).map(({ pid }) => pid);
  const peers = new Peers({ processes: () => [process.pid, ...others()] });
  const refuse = (why: string) => new AdminError("forbidden", `${why}, see the option admin_tokens`);

  return async (request) => {
    const reason = strangerReason(request, { hosts });
    if (reason !== undefined) throw new AdminError("forbidden", refusals[reason]);
    // Over plain HTTP, a browser sends no Sec-Fetch headers to such a name, so a page would look
    // like a program.
    const isNamed = !request.secure && strangerReason(request, { hosts: nobody }) !== undefined;
    if (isNamed && request.header("sec-fetch-site") === undefined)
      throw refuse("Over plain HTTP, calls at a name other than localhost need a token");
    if (local === "none") throw refuse("Calls from this machine need a token, too");
    const peer = await peers.behind(request.conn.socket).catch(() => {
      throw refuse("Cannot identify the calling program: call the admin socket, or use a token");
    });
    if (peer?.isServer === true)
      throw refuse("Requests of the server itself need a token, because it may send them on behalf of somebody else");
    if (local === "any_user") return { by: "this machine", scopes: everything };
    if (peer === undefined) throw refuse("Cannot identify the calling user: call the admin socket, or use a token");
    const { user } = peer;
    if (user !== 0 && user !== process.getuid?.())
      throw refuse(`User ${user} of this machine is not the user that runs the server: use a token`);
    return { by: `loopback uid ${user}`, scopes: everything };
  };
}

function tokensOf(option: unknown): AdminToken[] {
  return readTokens(option, {
    name: "admin_tokens",
    example: '{ name: "deploy", scopes: ["read", "admin"] }',
    read: ({ name, scopes = [...everything], ...others }) => {
      const isKnown = Array.isArray(scopes) && scopes.every((scope) => everything.has(scope as AdminScope));
      if (!isKnown || Object.keys(others).length > 0 || !["string", "undefined"].includes(typeof name))
        return undefined;
      return { name: name as string | undefined, scopes: new Set(scopes as AdminScope[]) };
    },
  });
}
