/** CORS: which web pages may call the API and read its responses. */
import { headerFault } from "modhost/node";
import type { HttpRequest, ResponseHeaders } from "../../../core/types.ts";

/** `API.HTTPHeaders` of the node's configuration. */
export type ConfiguredHeaders = Readonly<Record<string, readonly string[]>>;

const requestHeaders = ["Origin", "Accept", "Content-Type", "X-Requested-With"];

export interface CorsEndpoint {
  /**
   * Whether a token may grant access. Pages must then be allowed to send the Authorization header.
   */
  readonly authorized: boolean;
  /** Methods that this endpoint handles. */
  readonly methods: readonly string[];
}

interface Rules {
  readonly origins: readonly string[];
  /** The origins that the configuration lists, without the default ones. */
  readonly configured: readonly string[];
  readonly methods: readonly string[];
  readonly credentials: boolean;
  /** Names of allowed request headers, in lower case. */
  readonly headers: ReadonlySet<string>;
}

/** The CORS rules for one request, from the current configuration. */
export class Cors {
  readonly #request: HttpRequest;
  readonly #configured: ConfiguredHeaders;
  readonly #endpoint: CorsEndpoint;
  #made: Rules | undefined;

  constructor(request: HttpRequest, configured: ConfiguredHeaders, endpoint: CorsEndpoint) {
    this.#request = request;
    this.#configured = configured;
    this.#endpoint = endpoint;
  }

  /** Computed lazily: requests that do not come from browsers never need them. */
  get #rules(): Rules {
    this.#made ??= this.#make();
    return this.#made;
  }

  #make(): Rules {
    const port = String(this.#request.conn.serverport());
    const { authorized, methods: own } = this.#endpoint;
    const listed = (name: string) => {
      const found = Object.entries(this.#configured).find(([key]) => key.toLowerCase() === name);
      return found?.[1] ?? [];
    };
    const { API_ORIGIN: fromEnvironment } = process.env;
    const configured = [...listed("access-control-allow-origin"), ...(fromEnvironment ? [fromEnvironment] : [])];
    const methods = listed("access-control-allow-methods");
    // As in go-ipfs, pages may not send HEAD.
    const allowed = methods.length > 0 ? methods : own.filter((method) => method !== "HEAD");
    const names = authorized ? [...requestHeaders, "Authorization"] : requestHeaders;
    return {
      origins: (configured.length > 0 ? configured : defaultOrigins).map((origin) => origin.replaceAll("<port>", port)),
      configured,
      methods: allowed.map((method) => method.toUpperCase()),
      credentials: listed("access-control-allow-credentials").some((word) => word.toLowerCase() === "true"),
      headers: new Set(names.map((name) => name.toLowerCase())),
    };
  }

  /** Returns whether the origin is listed exactly, or all origins are allowed. */
  isAllowedOrigin(origin: string): boolean {
    const { origins } = this.#rules;
    return origins.includes("*") || origins.includes(origin);
  }

  /**
   * Returns whether the configuration allows the origin or all origins; the default origins do not
   * count.
   */
  isConfigured(origin: string): boolean {
    const { configured } = this.#rules;
    return configured.includes("*") || configured.includes(origin);
  }

  /** Returns the CORS headers of every response, which say which origin may read it. */
  headers(): ResponseHeaders {
    return { vary: "Origin", ...this.#grant(this.#request.method) };
  }

  /** Returns the headers of the response to a preflight request. For `plainly`, see `Frame`. */
  preflight(plainly = false): ResponseHeaders {
    const method = this.#request.header("access-control-request-method") ?? "";
    const wanted = this.#request.header("access-control-request-headers") ?? "";
    const varying = ["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"];
    const vary = plainly ? varying.join(", ") : varying;
    const names = wanted.split(/[\s,]+/).filter((name) => name !== "");
    const grant = names.every((name) => this.#rules.headers.has(name.toLowerCase())) ? this.#grant(method) : {};
    if (grant.access_control_allow_origin === undefined) return { vary };
    const allowed = names.length === 0 ? undefined : plainly ? wanted : names.map(canonical).join(", ");
    return {
      vary,
      ...grant,
      access_control_allow_methods: method.toUpperCase(),
      access_control_allow_headers: allowed,
    };
  }

  #grant(method: string): ResponseHeaders {
    const origin = this.#request.header("origin") ?? "";
    const named = method.toUpperCase();
    if (origin === "") return {};
    const { methods, origins, credentials } = this.#rules;
    if (!(named === "OPTIONS" || methods.includes(named)) || !this.#matches(origin)) return {};
    return {
      access_control_allow_origin: origins.includes("*") ? "*" : origin,
      access_control_allow_credentials: credentials ? "true" : undefined,
    };
  }

  /** Compares case-insensitively. One `*` in a listed origin matches anything. */
  #matches(origin: string): boolean {
    const lower = origin.toLowerCase();
    return this.#rules.origins.some((listed) => {
      const [before = "", after] = listed.toLowerCase().split("*", 2);
      if (after === undefined) return before === lower;
      return lower.length >= before.length + after.length && lower.startsWith(before) && lower.endsWith(after);
    });
  }
}

const defaultOrigins = ["http", "https"].flatMap((scheme) =>
  ["127.0.0.1", "[::1]", "localhost"].map((name) => `${scheme}://${name}:<port>`),
);

const canonical = (name: string) =>
  name.toLowerCase().replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());

/** Headers that configure the CORS rules. */
const ruling = /^access-control-allow-(origin|methods|credentials)$/i;

/**
 * Returns the configured headers that are copied to responses unchanged: all except those for CORS.
 */
export function copiedHeaders(configured: ConfiguredHeaders): ResponseHeaders {
  const copied = Object.entries(configured).filter(([name]) => !ruling.test(name));
  return Object.fromEntries(copied.map(([name, values]) => [name.toLowerCase().replaceAll("-", "_"), values]));
}

/**
 * Returns the configured headers that are valid. Calls `warn` for each other one; responses omit
 * it.
 */
export function sendableHeaders(configured: ConfiguredHeaders, warn: (sentence: string) => void): ConfiguredHeaders {
  const sendable = Object.entries(configured).filter(([name, values]) => {
    const fault = headerFault(name, values);
    if (fault !== undefined) warn(`API.HTTPHeaders.${JSON.stringify(name)} is not sent: ${fault}`);
    return fault === undefined;
  });
  return Object.fromEntries(sendable);
}
