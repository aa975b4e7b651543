/** Access checks on a request before its command is looked up, in the order of go-ipfs. */

import { encodePath, isForwarded, type StrangerReason, strangerReason } from "../../../core/http/index.ts";
import type {
  HttpRequest,
  PresentedToken,
  ResponseFields,
  ResponseHeaders,
  TokenRefusal,
  Tokens,
} from "../../../core/types.ts";
import type { Level } from "../rpc/levels.ts";
import { type Authorization, authorizedBy, opensPath } from "./authorizations.ts";
import { type ConfiguredHeaders, Cors } from "./cors.ts";
import { plainError } from "./respond.ts";
import { anyCommand, opensCommands } from "./token_scopes.ts";
import { permitsPath, presentedToken, type Token } from "./tokens.ts";

export interface GateSettings {
  readonly table: { readonly level: Level };
  /** Path prefix in front of `/api/v0`; empty by default. Tokens name paths without it. */
  readonly base?: string;
  readonly tokens: readonly Token[];
  /** The server's own token store. */
  readonly serverTokens?: Tokens | undefined;
  /** Whether local callers also need a token (option `api_require_token`). */
  readonly requireToken?: boolean;
  /**
   * The entries of `API.Authorizations`. If there are any, every call must present one of them or a
   * token.
   */
  readonly authorizations?: readonly Authorization[] | undefined;
  /** Host names, in addition to localhost, under which the API may be called without a token. */
  readonly hosts: ReadonlySet<string>;
  /**
   * Returns whether an address belongs to a trusted caller (option `api_trusted_callers`). Such
   * programs need no secret, whatever else requires one, and may forward calls of others.
   */
  readonly relays?: (address: string) => boolean;
  /**
   * Whether the listener is a Unix socket. Anyone who may open its file is local, and may use any
   * host name.
   */
  readonly isLocal?: boolean;
  /** Decoded content paths whose pages may call the API: the front end that `api_webui` names. */
  readonly ownContent?: readonly string[];
  /** Returns the current value of `API.HTTPHeaders`. */
  headers(): ConfiguredHeaders;
}

/** One request with what the checks need to know about it. */
export interface Visit {
  readonly request: HttpRequest;
  readonly settings: GateSettings;
  /** The tokens of the settings, read once per request. */
  readonly tokens: readonly Token[];
  readonly authorizations: readonly Authorization[] | undefined;
  /** The path of the request, percent-decoded but not normalized. */
  readonly path: string;
  /** The path without the base, which token rules refer to. */
  readonly pathWithoutBase: string;
  /**
   * The token or authorization that the Authorization header presents; "wrong" if tokens are
   * configured and it matches none.
   */
  readonly caller: Token | Authorization | "wrong" | undefined;
  /**
   * The server's token that the request presents, or the reason why it is refused; undefined if it
   * presents none.
   */
  readonly serverToken: PresentedToken | TokenRefusal | undefined;
  /** Path components after the API prefix; undefined for a path outside it. */
  readonly components: readonly string[] | undefined;
  /** Methods that this endpoint handles. */
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
  noContent,
];

/**
 * Returns the response of the first check that produces one; undefined if the request may proceed.
 */
export function firstRefusal(visit: Visit): ResponseFields | undefined {
  for (const step of steps) {
    const refusal = step(visit);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

export function createVisit(
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
  // A token of the options takes precedence, even if it looks like a token of the server.
  const serverToken = typeof caller === "object" ? undefined : serverTokens?.identify(request, { basic: true });
  const { base = "" } = settings;
  const pathWithoutBase = path.startsWith(base) ? path.slice(base.length) : path;
  return {
    request,
    settings,
    tokens,
    authorizations,
    path,
    pathWithoutBase,
    caller,
    serverToken,
    components,
    methods,
    cors,
  };
}

function callerOf(
  request: HttpRequest,
  tokens: readonly Token[],
  authorizations: readonly Authorization[] = [],
): Visit["caller"] {
  if (tokens.length === 0 && authorizations.length === 0) return undefined;
  const authorization = request.header("authorization");
  const token = tokens.length === 0 ? undefined : presentedToken(authorization, tokens);
  const known = authorizedBy(authorization, authorizations);
  return typeof token === "object" ? token : (known ?? token);
}

/** Percent-decodes a path and leaves malformed escapes unchanged. */
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
  const components: string[] = [];
  for (const component of path.split("/")) {
    if (component === "..") components.pop();
    else if (component !== "" && component !== ".") components.push(component);
  }
  const clean = `/${components.join("/")}${path.endsWith("/") && components.length > 0 ? "/" : ""}`;
  return clean === path ? undefined : moved(request, clean, settings);
}

function wholePrefix({ path, components, request, settings }: Visit): ResponseFields | undefined {
  return components?.length === 1 && components[0] === "" && !path.endsWith("/")
    ? moved(request, `${path}/`, settings)
    : undefined;
}

function moved({ method, url }: HttpRequest, path: string, { table: { level } }: GateSettings): ResponseFields {
  const { status, words } = level.httpTraits.moved;
  const location = `${encodePath(path)}${url.query === undefined ? "" : `?${url.query}`}`;
  if (method !== "GET" && method !== "HEAD") return { status_code: status, headers: { location }, body: "" };
  const body = `<a href="${location.replaceAll("&", "&amp;").replaceAll('"', "&#34;")}">${words}</a>.\n\n`;
  return { status_code: status, headers: { location, content_type: "text/html; charset=utf-8" }, body };
}

function versionMatches({ request, components, settings }: Visit): ResponseFields | undefined {
  const agent = request.header("user-agent") ?? "";
  if (components === undefined || components[0] === "version") return undefined;
  const { httpTraits: frame, traits } = settings.table.level;
  if (!frame.gatedAgents.some((word) => agent.includes(word))) return undefined;
  /** The user agent of clients of this version, without the commit. */
  const own = `/${traits.program}/${traits.version}/`;
  return agent === own ? undefined : plainError(400, `api version mismatch (${own} != ${agent})`);
}

/** The error text of Kubo. */
const denied =
  "Kubo RPC Access Denied: Please provide a valid authorization token as defined in the API.Authorizations configuration.";

/** Refuses a token of the server that is invalid or expired, wherever it is presented. */
function tokenGood({ serverToken, cors }: Visit): ResponseFields | undefined {
  return serverToken !== undefined && "status" in serverToken ? refusalResponse(serverToken, cors) : undefined;
}

/** Returns a refusal in the form of the API. */
export function refusalResponse({ status, message, headers }: TokenRefusal, cors: Cors): ResponseFields {
  return plainError(status, message, { ...cors.headers(), ...headers });
}

/**
 * If the config has API.Authorizations, a caller without a secret learns nothing, not even from a
 * preflight.
 */
function authorized(visit: Visit): ResponseFields | undefined {
  const { authorizations, caller, serverToken, pathWithoutBase } = visit;
  if (authorizations === undefined || serverToken !== undefined || isTrusted(visit)) return undefined;
  if (typeof caller !== "object") return plainError(403, denied);
  return isAuthorization(caller) && !opensPath(caller, pathWithoutBase) ? plainError(403, denied) : undefined;
}

function preflight({ request, settings, cors }: Visit): ResponseFields | undefined {
  if (request.method !== "OPTIONS" || !request.header("access-control-request-method")) return undefined;
  const { status, plainly } = settings.table.level.httpTraits.preflight;
  return { status_code: status, headers: cors.preflight(plainly), body: "" };
}

/**
 * Requires a local caller or a secret and, over TCP, a known Host name as protection against DNS
 * rebinding.
 */
function mayCall(visit: Visit): ResponseFields | undefined {
  const { request, settings, caller, serverToken, pathWithoutBase, cors } = visit;
  if (serverToken !== undefined) {
    const isFor = "status" in serverToken || opensCommands(serverToken);
    return isFor ? undefined : refusalResponse((settings.serverTokens as Tokens).lacks(serverToken, anyCommand), cors);
  }
  const refuse = (why: string) => plainError(403, `403 - Forbidden: ${why}`, cors.headers());
  if (caller === "wrong") return refuse("that token is not one of the option api_tokens");
  if (caller !== undefined) {
    if (isAuthorization(caller) || permitsPath(caller, pathWithoutBase)) return undefined;
    return refuse("that token is for other paths");
  }
  if (settings.requireToken === true && !isTrusted(visit)) {
    return refuse("calls need a token: the one in the file api-token of the repo, or one of the option api_tokens");
  }
  const reason = settings.isLocal === true ? forwardedReason(request) : strangerReason(request, settings);
  return reason === undefined ? undefined : refuse(refusals[reason]);
}

/**
 * Returns whether the caller is one of `api_trusted_callers`. This uses the address of its
 * connection, which no header can forge. A caller that presents a secret is judged by the secret
 * instead.
 */
function isTrusted({ request, settings: { relays } }: Visit): boolean {
  return relays?.(request.conn.ip()) === true && request.header("authorization") === undefined;
}

/**
 * Anyone who may open a Unix socket is local, and may use any host name. Behind a proxy, the actual
 * caller is unknown.
 */
const forwardedReason = (request: HttpRequest) => (isForwarded(request.raw) ? "proxy" : undefined);

const refusals: Readonly<Record<StrangerReason, string>> = {
  "other machine": "calls from other machines need a token, see the option api_tokens",
  proxy: "calls through a proxy need a token, see the option api_tokens",
  "foreign name": "without a token, this API is only available under localhost and the names in the option api_hosts",
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
  return plainError(405, "405 - Method Not Allowed", headers);
}

/**
 * An explanation that is added to go-ipfs's message if tokens are configured, which go-ipfs does
 * not have.
 */
const strangers =
  ": pages of other origins need an entry in API.HTTPHeaders.Access-Control-Allow-Origin of the node's configuration, " +
  "whatever token they send";

/**
 * Refuses requests from web pages of other origins, including those that only the user agent
 * identifies as sent by a browser.
 */
function browserAllowed({ request, tokens, cors }: Visit): ResponseFields | undefined {
  const [origin, referer, agent] = ["origin", "referer", "user-agent"].map((name) => request.header(name) ?? "") as [
    string,
    string,
    string,
  ];
  const site = request.header("sec-fetch-site");
  const isPost = request.method === "POST";
  const isStranger =
    (origin !== "" && !cors.isAllowedOrigin(origin)) ||
    (referer !== "" && !cors.isAllowedOrigin(originOf(referer))) ||
    (isPost && origin === "" && referer === "" && agent.startsWith("Mozilla") && !agent.includes("Electron")) ||
    (site?.toLowerCase() === "cross-site" && origin === "");
  const why = tokens.length > 0 ? strangers : "";
  return isStranger ? plainError(403, `403 - Forbidden${why}`, cors.headers()) : undefined;
}

/**
 * Refuses calls from content pages: anyone can publish them, and they may have the origin of the
 * API.
 */
function noContent({ request, settings: { ownContent = [] }, cors }: Visit): ResponseFields | undefined {
  const referer = request.header("referer");
  if (referer === undefined) return undefined;
  const origin = originOf(referer);
  const host = request.url.host ?? request.header("host") ?? "";
  const isHere = origin.slice(origin.indexOf("://") + 3).toLowerCase() === host.toLowerCase();
  if (!isHere && cors.isConfigured(origin)) return undefined;
  const path = `/${pathIn(referer)
    .split("/")
    .filter((name) => name !== "")
    .join("/")}`;
  if (!/^\/ip[fn]s(?:\/|$)/.test(path)) return undefined;
  if (ownContent.some((own) => path === own || path.startsWith(`${own}/`))) return undefined;
  const why =
    "pages below /ipfs and /ipns may not call the API: name the page in the option api_webui, or serve it from an origin that " +
    "API.HTTPHeaders.Access-Control-Allow-Origin of the node's configuration lists";
  return plainError(403, `403 - Forbidden: ${why}`, cors.headers());
}

/** Returns the decoded path of a URL. */
const pathIn = (url: string): string => decoded(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*([^?#]*)/i.exec(url)?.[1] ?? "");

function originOf(url: string): string {
  const [, scheme = "", host = ""] = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/(?:[^/?#]*@)?([^/?#]*))?/i.exec(url) ?? [];
  return `${scheme.toLowerCase()}://${host}`;
}
