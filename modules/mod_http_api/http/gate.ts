/** Who is let in: the steps between a request and the lookup of its command, in the order of the reference. */

import { BlockList, isIP } from "node:net";
import { apiVersion } from "modhost/node";
import { encodePath } from "../../../core/http/index.ts";
import type { HttpRequest, ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { type ConfiguredHeaders, Cors } from "./cors.ts";
import { plain } from "./respond.ts";
import { permits, presented, type Token } from "./tokens.ts";

export interface GateSettings {
  readonly tokens: readonly Token[];
  /** Names beside localhost under which the API may be called without a token. */
  readonly hosts: ReadonlySet<string>;
  /** Only callers of this machine come this way, though their address does not say so: a Unix socket. */
  readonly isLocal?: boolean;
  /** `API.HTTPHeaders` as it stands at the moment. */
  headers(): ConfiguredHeaders;
}

/** One request at the gate. */
export interface Visit {
  readonly request: HttpRequest;
  readonly settings: GateSettings;
  /** Decoded, nothing squeezed or resolved. */
  readonly path: string;
  /** Components behind the prefix of the API; undefined for a path beside it. */
  readonly components: readonly string[] | undefined;
  /** Methods that run something. */
  readonly methods: readonly string[];
  readonly cors: Cors;
}

type Step = (visit: Visit) => ResponseFields | undefined;

const steps: readonly Step[] = [
  cleanPath,
  versionMatches,
  wholePrefix,
  preflight,
  mayCall,
  plainOptions,
  methodAllowed,
  browserAllowed,
];

/** The refusal (or answer) of the first step that has one; undefined: come in. */
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
  const cors = new Cors(request, settings.headers(), { authorized: settings.tokens.length > 0, methods });
  return { request, settings, path: decoded(request.url.raw_path), components: rest?.split("/"), methods, cors };
}

/** As URL paths are decoded; what is no escape stands for itself. */
function decoded(raw: string): string {
  return raw.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

function cleanPath({ path, request }: Visit): ResponseFields | undefined {
  const kept: string[] = [];
  for (const component of path.split("/")) {
    if (component === "..") kept.pop();
    else if (component !== "" && component !== ".") kept.push(component);
  }
  const clean = `/${kept.join("/")}${path.endsWith("/") && kept.length > 0 ? "/" : ""}`;
  return clean === path ? undefined : moved(request, clean);
}

function wholePrefix({ path, components, request }: Visit): ResponseFields | undefined {
  return components?.length === 1 && components[0] === "" && !path.endsWith("/")
    ? moved(request, `${path}/`)
    : undefined;
}

function moved({ method, url }: HttpRequest, path: string): ResponseFields {
  const location = `${encodePath(path)}${url.query === undefined ? "" : `?${url.query}`}`;
  if (method !== "GET" && method !== "HEAD") return { status_code: 301, headers: { location }, body: "" };
  const body = `<a href="${location.replaceAll("&", "&amp;").replaceAll('"', "&#34;")}">Moved Permanently</a>.\n\n`;
  return { status_code: 301, headers: { location, content_type: "text/html; charset=utf-8" }, body };
}

/** As clients and servers of this API call themselves, less the commit. */
const apiAgent = `/go-ipfs/${apiVersion}/`;

function versionMatches({ request, components }: Visit): ResponseFields | undefined {
  const { user_agent: agent = "" } = request.headers;
  if (components === undefined || components[0] === "version") return undefined;
  if (!agent.includes("/go-ipfs/") || agent === apiAgent) return undefined;
  return plain(400, `api version mismatch (${apiAgent} != ${agent})`);
}

function preflight({ request, cors }: Visit): ResponseFields | undefined {
  if (request.method !== "OPTIONS" || !request.headers.access_control_request_method) return undefined;
  return { status_code: 200, headers: cors.preflight(), body: "" };
}

/** Loopback, or a token; and no name that a page could have been rebound to. */
function mayCall({ request, settings, path, cors }: Visit): ResponseFields | undefined {
  const refuse = (why: string) => plain(403, `403 - Forbidden: ${why}`, cors.headers());
  const { headers } = request;
  const token = settings.tokens.length === 0 ? undefined : presented(headers.authorization, settings.tokens);
  if (token === "wrong") return refuse("that token is not one of the option api_tokens");
  if (token !== undefined) return permits(token, path) ? undefined : refuse("that token is for other paths");
  if (settings.isLocal !== true && !isLoopback(request.ip))
    return refuse("calls from other machines need a token, see the option api_tokens");
  if (isForwarded(request)) return refuse("calls through a proxy need a token, see the option api_tokens");
  const host = hostOf(request);
  if (host !== undefined && !isLocalName(host) && !settings.hosts.has(host)) {
    return refuse("without a token this API answers at localhost and at the names of the option api_hosts");
  }
  return undefined;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function isLoopback(address: string): boolean {
  const family = isIP(address);
  // The list reads every address anew: version 4 has one spelling.
  return family === 4 ? address.startsWith("127.") : family === 6 && loopback.check(address, "ipv6");
}

function isForwarded({ headers }: HttpRequest): boolean {
  for (const name in headers) {
    if (name === "forwarded" || name === "via" || name === "x_real_ip" || name.startsWith("x_forwarded_")) return true;
  }
  return false;
}

/** The name that the client called, without port; undefined when it named none. */
function hostOf({ url, headers }: HttpRequest): string | undefined {
  const authority = url.host ?? headers.host;
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:]*))/.exec(authority ?? "") ?? [];
  const host = (bracketed ?? name ?? "").toLowerCase().replace(/\.$/, "");
  return host === "" ? undefined : host;
}

const isLocalName = (host: string) => host === "localhost" || isLoopback(host);

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

/** What the reference's bare refusal leaves out; said where there are tokens, which it does not know. */
const strangers =
  ": pages of other origins are let in by API.HTTPHeaders.Access-Control-Allow-Origin of the node's configuration, " +
  "whatever token they have";

/** Pages of strangers are refused, whether they say whose they are or only that a browser sends them. */
function browserAllowed({ request, settings, cors }: Visit): ResponseFields | undefined {
  const { origin = "", referer = "", user_agent: agent = "", sec_fetch_site: site } = request.headers;
  const isPost = request.method === "POST";
  const isStranger =
    (origin !== "" && !cors.lists(origin)) ||
    (referer !== "" && !cors.lists(originOf(referer))) ||
    (isPost && origin === "" && referer === "" && agent.startsWith("Mozilla") && !agent.includes("Electron")) ||
    (site?.toLowerCase() === "cross-site" && origin === "");
  const why = settings.tokens.length > 0 ? strangers : "";
  return isStranger ? plain(403, `403 - Forbidden${why}`, cors.headers()) : undefined;
}

function originOf(url: string): string {
  const [, scheme = "", host = ""] = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/(?:[^/?#]*@)?([^/?#]*))?/i.exec(url) ?? [];
  return `${scheme.toLowerCase()}://${host}`;
}
