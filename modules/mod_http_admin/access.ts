/** Who may call: through the socket, from this machine, or with a token. */
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
import { type Identity, isOfBrowser, isTyped, type PageKeys } from "./dashboard/keys.ts";
import { AdminError, type AdminErrorCode } from "./errors.ts";
import { Users } from "./peer.ts";

/** A caller that is let in. */
export interface Visitor {
  /** For the record of changes. */
  readonly by: string;
  readonly viaSocket?: true;
  readonly scopes: ReadonlySet<AdminScope>;
}

/** @throws {AdminError} unauthorized, forbidden */
export type Authorize = (request: HttpRequest) => Visitor | Promise<Visitor>;

const users = new Users();

const everything: ReadonlySet<AdminScope> = new Set<AdminScope>(["read", "admin"]);

/** Through the socket comes only who may open its file: the user of this process, and root. */
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

/** Callers of the ports of the server. */
export interface PortCallers {
  readonly authorize: Authorize;
  /** Whom a browser speaks for without a token in its request: the dashboard's document is given a key for that. */
  identify(request: HttpRequest): Promise<Identity | undefined>;
}

/** @throws {ModhostError} OPTION_INVALID */
export function throughPorts(module: Module, keys: () => Promise<PageKeys>): PortCallers {
  const tokens = tokensOf(module.get_option<unknown>("admin_tokens"));
  const hosts = new Set((module.get_option_array("admin_hosts") ?? []).map((name) => name.toLowerCase()));
  const local = module.get_option_string("admin_local") ?? "same_user";
  const presented = (request: HttpRequest, secret: string | undefined) =>
    ofServer(module, request, secret) ?? withToken(secret, tokens);

  async function authorize(request: HttpRequest): Promise<Visitor> {
    assertOwnPage(request);
    if (request.headers.authorization !== undefined) return presented(request, bearerOf(request));
    const pages = await keys();
    const session = pages.session(request);
    const signedIn = session === undefined ? undefined : attempt(() => presented(request, session));
    const visitor = signedIn ?? (await fromHere(request, hosts, local));
    if (isOfBrowser(request) && !isTyped(request)) {
      pages.assert(request, signedIn === undefined ? "local" : `session ${session}`);
    }
    return visitor;
  }

  async function identify(request: HttpRequest): Promise<Identity | undefined> {
    const session = (await keys()).session(request);
    if (session !== undefined && attempt(() => presented(request, session)) !== undefined) {
      return `session ${session}`;
    }
    try {
      await fromHere(request, hosts, local);
      return "local";
    } catch (error) {
      if (error instanceof AdminError) return undefined;
      throw error;
    }
  }
  return { authorize, identify };
}

/** Undefined where the token is known no longer: who was signed in with it is as if he had never been. */
function attempt(ask: () => Visitor): Visitor | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof AdminError && error.code === "unauthorized") return undefined;
    throw error;
  }
}

/** Pages of other origins get no answer, whatever they have: neither what they would read nor what they would do. */
function assertOwnPage(request: HttpRequest): void {
  const { url, headers, method } = request;
  const { sec_fetch_site: site = "none" } = headers;
  const isOwn = site === "none" || site === "same-origin";
  if (!isOwn || !isSameOrigin(request, url.host ?? headers.host))
    throw new AdminError("forbidden", "Pages of other origins may not call the Admin API");
  if (method === "GET" || method === "HEAD") return;
  // A form can be sent by any page, before anybody asks whether it may; with these a browser asks first.
  const isJson = /^application\/json\s*(?:;|$)/i.test(headers.content_type ?? "");
  if (!isJson && headers.x_modhost_admin === undefined) {
    const remedy = "send Content-Type: application/json, or the header X-Modhost-Admin: 1";
    throw new AdminError("forbidden", `What changes something must not look like a form: ${remedy}`);
  }
}

/** A token of the server; undefined where the request has none. @throws {AdminError} */
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

function bearerOf({ headers }: HttpRequest): string | undefined {
  const { scheme, credentials } = readAuthorization(headers.authorization) ?? {};
  return scheme === "bearer" ? credentials : undefined;
}

function withToken(secret: string | undefined, tokens: readonly AdminToken[]): Visitor {
  const token = findToken(secret === undefined ? [] : [secret], tokens);
  if (token !== undefined) return { by: `token ${token.name ?? "without a name"}`, scopes: token.scopes };
  const remedy = "send Authorization: Bearer TOKEN, with one that modhost token new has made";
  throw new AdminError("unauthorized", `That is no token of the Admin API: ${remedy}`, { www_authenticate: "Bearer" });
}

const refusals: Readonly<Record<StrangerReason, string>> = {
  "other machine": "Calls from other machines need a token, see the option admin_tokens",
  proxy: "Calls through a proxy need a token, see the option admin_tokens",
  "foreign name": "Without a token the Admin API answers at localhost and at the names of the option admin_hosts alone",
};

async function fromHere(request: HttpRequest, hosts: ReadonlySet<string>, local: string): Promise<Visitor> {
  const reason = strangerReason(request, { hosts });
  if (reason !== undefined) throw new AdminError("forbidden", refusals[reason]);
  const refuse = (why: string) => new AdminError("forbidden", `${why}, see the option admin_tokens`);
  if (local === "none") throw refuse("Calls from this machine need a token, too");
  if (local === "any_user") return { by: "this machine", scopes: everything };
  const user = await users.behind(request.conn.socket);
  if (user === undefined)
    throw refuse("Which user of this machine calls cannot be told: call the admin socket, or with a token");
  if (user !== 0 && user !== process.getuid?.())
    throw refuse(`User ${user} of this machine is not the one that the server runs as: call with a token`);
  return { by: `loopback uid ${user}`, scopes: everything };
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
