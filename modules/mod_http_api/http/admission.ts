/** Access checks on a request before its command is looked up, in the order of the reference. */

import { encodePath, isForwarded, type StrangerReason, strangerReason } from "../../../core/http/index.ts";
import type {
  HttpRequest,
  PresentedToken,
  ResponseFields,
  ResponseHeaders,
  TokenNeed,
  TokenRefusal,
  Tokens,
} from "../../../core/types.ts";
import type { Level } from "../rpc/levels.ts";
import { type Authorization, authorizedBy, opens } from "./authorizations.ts";
import { type ConfiguredHeaders, Cors } from "./cors.ts";
import { plain } from "./respond.ts";
import { permits, presented, type Token } from "./tokens.ts";

export interface GateSettings {
  readonly table: { readonly level: Level };
  /** What stands before `/api/v0` in paths; nothing by default. Tokens name paths without it. */
  readonly base?: string;
  readonly tokens: readonly Token[];
  /** The tokens of the server. */
  readonly serverTokens?: Tokens | undefined;
  /** Local callers need a token as well (option `api_require_token`). */
  readonly requireToken?: boolean;
  /** `API.Authorizations` as it was at the start; if there are any, every call must present one of them or a token. */
  readonly authorizations?: readonly Authorization[] | undefined;
  /** Host names besides localhost under which the API may be called without a token. */
  readonly hosts: ReadonlySet<string>;
  /** Addresses whose programs need no secret, whatever else asks for one, and hand on calls of others (option `api_trusted_callers`). */
  readonly relays?: (address: string) => boolean;
  /** The listener is a Unix socket: whoever may open its file is local, and may name any host. */
  readonly isLocal?: boolean;
  /** The current value of `API.HTTPHeaders`. */
  headers(): ConfiguredHeaders;
}

/** One request with what the checks need to know about it. */
export interface Visit {
  readonly request: HttpRequest;
  readonly settings: GateSettings;
  /** Those of the settings, as they are for this request. */
  readonly tokens: readonly Token[];
  readonly authorizations: readonly Authorization[] | undefined;
  /** Percent-decoded, but not normalized. */
  readonly path: string;
  /** The same without the base: what tokens are for. */
  readonly place: string;
  /** What the Authorization header of the request is; "wrong" if tokens are configured and it is none of them. */
  readonly caller: Token | Authorization | "wrong" | undefined;
  /** The token of the server that the request presents, or why that is not good; undefined where it presents none. */
  readonly held: PresentedToken | TokenRefusal | undefined;
  /** Path components after the API prefix; undefined for a path outside it. */
  readonly components: readonly string[] | undefined;
  /** Methods that are handled at this endpoint. */
  readonly methods: readonly string[];
  readonly cors: Cors;
}

type Step = (visit: Visit) => ResponseFields | undefined;

const steps: readonly Step[] = [
  cleanPath,
  versionMatches,
  wholePrefix,
  tokenGood,
  authorized,
  preflight,
  mayCall,
  plainOptions,
  methodAllowed,
  browserAllowed,
];

/** The response of the first check that produces one; undefined if the request may proceed. */
export function pass(visit: Visit): ResponseFields | undefined {
  for (const step of steps) {
    const answer = step(visit);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

export function visit(
  request: HttpRequest,
  settings: GateSettings,
  rest: string | undefined,
  methods: readonly string[],
): Visit {
  const { tokens, serverTokens, authorizations } = settings;
  const authorized = tokens.length > 0 || serverTokens !== undefined || authorizations !== undefined;
  const cors = new Cors(request, settings.headers(), { authorized, methods });
  const path = decoded(request.url.raw_path);
  const components = rest?.split("/");
  const caller = callerOf(request, tokens, authorizations);
  // One of the options goes on, whatever it looks like.
  const held = typeof caller === "object" ? undefined : serverTokens?.identify(request, { basic: true });
  const { base = "" } = settings;
  const place = path.startsWith(base) ? path.slice(base.length) : path;
  return { request, settings, tokens, authorizations, path, place, caller, held, components, methods, cors };
}

function callerOf(
  { headers: { authorization } }: HttpRequest,
  tokens: readonly Token[],
  authorizations: readonly Authorization[] = [],
): Visit["caller"] {
  if (tokens.length === 0 && authorizations.length === 0) return undefined;
  const token = tokens.length === 0 ? undefined : presented(authorization, tokens);
  const known = authorizedBy(authorization, authorizations);
  return typeof token === "object" ? token : (known ?? token);
}

/** Percent-decodes a path; malformed escapes are kept as they are. */
function decoded(raw: string): string {
  if (!raw.includes("%")) return raw;
  return raw.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

function cleanPath({ path, request, settings }: Visit): ResponseFields | undefined {
  if (path.startsWith("/") && !path.includes("//") && !path.includes("/.")) return undefined;
  const kept: string[] = [];
  for (const component of path.split("/")) {
    if (component === "..") kept.pop();
    else if (component !== "" && component !== ".") kept.push(component);
  }
  const clean = `/${kept.join("/")}${path.endsWith("/") && kept.length > 0 ? "/" : ""}`;
  return clean === path ? undefined : moved(request, clean, settings);
}

function wholePrefix({ path, components, request, settings }: Visit): ResponseFields | undefined {
  return components?.length === 1 && components[0] === "" && !path.endsWith("/")
    ? moved(request, `${path}/`, settings)
    : undefined;
}

function moved({ method, url }: HttpRequest, path: string, { table: { level } }: GateSettings): ResponseFields {
  const { status, words } = level.frame.moved;
  const location = `${encodePath(path)}${url.query === undefined ? "" : `?${url.query}`}`;
  if (method !== "GET" && method !== "HEAD") return { status_code: status, headers: { location }, body: "" };
  const body = `<a href="${location.replaceAll("&", "&amp;").replaceAll('"', "&#34;")}">${words}</a>.\n\n`;
  return { status_code: status, headers: { location, content_type: "text/html; charset=utf-8" }, body };
}

function versionMatches({ request, components, settings }: Visit): ResponseFields | undefined {
  const { user_agent: agent = "" } = request.headers;
  if (components === undefined || components[0] === "version") return undefined;
  const { frame, traits } = settings.table.level;
  if (!frame.gatedAgents.some((word) => agent.includes(word))) return undefined;
  /** Of clients and servers of this version, without the commit. */
  const own = `/${traits.program}/${traits.version}/`;
  return agent === own ? undefined : plain(400, `api version mismatch (${own} != ${agent})`);
}

/** The text of Kubo. */
const denied =
  "Kubo RPC Access Denied: Please provide a valid authorization token as defined in the API.Authorizations configuration.";

/** A token that is no longer good lets nobody in, wherever it is presented. */
function tokenGood({ held, cors }: Visit): ResponseFields | undefined {
  return held !== undefined && "status" in held ? refusalAnswer(held, cors) : undefined;
}

/** A refusal in the form of the API. */
export function refusalAnswer({ status, message, headers }: TokenRefusal, cors: Cors): ResponseFields {
  return plain(status, message, { ...cors.headers(), ...headers });
}

const anyCommand: TokenNeed = { kind: "rpc-any" };

/** Where the config has API.Authorizations, nobody learns anything without a secret, not even by a preflight. */
function authorized(visit: Visit): ResponseFields | undefined {
  const { authorizations, caller, held, place } = visit;
  if (authorizations === undefined || held !== undefined || isTrusted(visit)) return undefined;
  if (typeof caller !== "object") return plain(403, denied);
  return isAuthorization(caller) && !opens(caller, place) ? plain(403, denied) : undefined;
}

function preflight({ request, settings, cors }: Visit): ResponseFields | undefined {
  if (request.method !== "OPTIONS" || !request.headers.access_control_request_method) return undefined;
  const { status, plainly } = settings.table.level.frame.preflight;
  return { status_code: status, headers: cors.preflight(plainly), body: "" };
}

/** Requires a local caller or a secret and, over TCP, a known Host name as protection against DNS rebinding. */
function mayCall(visit: Visit): ResponseFields | undefined {
  const { request, settings, caller, held, place, cors } = visit;
  if (held !== undefined) {
    const isFor = "status" in held || held.allows(anyCommand);
    return isFor ? undefined : refusalAnswer((settings.serverTokens as Tokens).lacks(held, anyCommand), cors);
  }
  const refuse = (why: string) => plain(403, `403 - Forbidden: ${why}`, cors.headers());
  if (caller === "wrong") return refuse("that token is not one of the option api_tokens");
  if (caller !== undefined) {
    if (isAuthorization(caller) || permits(caller, place)) return undefined;
    return refuse("that token is for other paths");
  }
  if (settings.requireToken === true && !isTrusted(visit)) {
    return refuse("calls need a token: that of the file api-token in the repo, or one of the option api_tokens");
  }
  const reason = settings.isLocal === true ? forwardedReason(request) : strangerReason(request, settings);
  return reason === undefined ? undefined : refuse(refusals[reason]);
}

/** The caller is one of `api_trusted_callers`: by the address of its own connection, which no header forges. One that shows a secret goes by that. */
function isTrusted({ request, settings: { relays } }: Visit): boolean {
  return relays?.(request.conn.ip()) === true && request.headers.authorization === undefined;
}

/** Whoever may open a Unix socket is local, and may name any host; who stands behind a proxy there is not known. */
const forwardedReason = (request: HttpRequest) => (isForwarded(request) ? "proxy" : undefined);

const refusals: Readonly<Record<StrangerReason, string>> = {
  "other machine": "calls from other machines need a token, see the option api_tokens",
  proxy: "calls through a proxy need a token, see the option api_tokens",
  "foreign name": "without a token this API answers at localhost and at the names of the option api_hosts",
};

const isAuthorization = (caller: Token | Authorization): caller is Authorization => "prefixes" in caller;

const allowOf = (methods: readonly string[]) => ["OPTIONS", ...methods].join(", ");

function plainOptions({ request, methods, cors }: Visit): ResponseFields | undefined {
  if (request.method !== "OPTIONS") return undefined;
  return { status_code: 204, headers: { ...cors.headers(), allow: allowOf(methods) }, body: "" };
}

function methodAllowed({ request, methods, cors }: Visit): ResponseFields | undefined {
  if (methods.includes(request.method)) return undefined;
  const headers: ResponseHeaders = { ...cors.headers(), allow: allowOf(methods) };
  return plain(405, "405 - Method Not Allowed", headers);
}

/** An explanation added to the reference's message where tokens, which the reference does not have, are configured. */
const strangers =
  ": pages of other origins are let in by API.HTTPHeaders.Access-Control-Allow-Origin of the node's configuration, " +
  "whatever token they have";

/** Refuses requests from web pages of other origins, also if only the user agent reveals that a browser sent them. */
function browserAllowed({ request, tokens, cors }: Visit): ResponseFields | undefined {
  const { origin = "", referer = "", user_agent: agent = "", sec_fetch_site: site } = request.headers;
  const isPost = request.method === "POST";
  const isStranger =
    (origin !== "" && !cors.lists(origin)) ||
    (referer !== "" && !cors.lists(originOf(referer))) ||
    (isPost && origin === "" && referer === "" && agent.startsWith("Mozilla") && !agent.includes("Electron")) ||
    (site?.toLowerCase() === "cross-site" && origin === "");
  const why = tokens.length > 0 ? strangers : "";
  return isStranger ? plain(403, `403 - Forbidden${why}`, cors.headers()) : undefined;
}

function originOf(url: string): string {
  const [, scheme = "", host = ""] = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/(?:[^/?#]*@)?([^/?#]*))?/i.exec(url) ?? [];
  return `${scheme.toLowerCase()}://${host}`;
}
