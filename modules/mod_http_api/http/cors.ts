/** Which pages may call, and which may read the answer. */
import type { HttpRequest, ResponseHeaders } from "../../../core/types.ts";

/** `API.HTTPHeaders` of the node's configuration. */
export type ConfiguredHeaders = Readonly<Record<string, readonly string[]>>;

const requestHeaders = ["Origin", "Accept", "Content-Type", "X-Requested-With"];

export interface CorsPlace {
  /** Tokens are in use, so that pages may have to send them. */
  readonly authorized: boolean;
  /** Those by which something is called here. */
  readonly methods: readonly string[];
}

interface Rules {
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  readonly credentials: boolean;
  /** Lower case. */
  readonly headers: ReadonlySet<string>;
}

/** The rules of one request, as the configuration stands at the moment. */
export class Cors {
  readonly #request: HttpRequest;
  readonly #configured: ConfiguredHeaders;
  readonly #place: CorsPlace;
  #made: Rules | undefined;

  constructor(request: HttpRequest, configured: ConfiguredHeaders, place: CorsPlace) {
    this.#request = request;
    this.#configured = configured;
    this.#place = place;
  }

  /** Made when they are asked for: of programs that are no browsers they never are. */
  get #rules(): Rules {
    this.#made ??= this.#make();
    return this.#made;
  }

  #make(): Rules {
    const port = String(this.#request.conn.serverport());
    const { authorized, methods: own } = this.#place;
    const listed = (name: string) => {
      const found = Object.entries(this.#configured).find(([key]) => key.toLowerCase() === name);
      return found?.[1] ?? [];
    };
    const { API_ORIGIN: fromEnvironment } = process.env;
    const origins = [...listed("access-control-allow-origin"), ...(fromEnvironment ? [fromEnvironment] : [])];
    const methods = listed("access-control-allow-methods");
    // Pages send no HEAD in the reference.
    const allowed = methods.length > 0 ? methods : own.filter((method) => method !== "HEAD");
    const names = authorized ? [...requestHeaders, "Authorization"] : requestHeaders;
    return {
      origins: (origins.length > 0 ? origins : defaultOrigins).map((origin) => origin.replaceAll("<port>", port)),
      methods: allowed.map((method) => method.toUpperCase()),
      credentials: listed("access-control-allow-credentials").some((word) => word.toLowerCase() === "true"),
      headers: new Set(names.map((name) => name.toLowerCase())),
    };
  }

  /** Exactly listed, or everything is. */
  lists(origin: string): boolean {
    const { origins } = this.#rules;
    return origins.includes("*") || origins.includes(origin);
  }

  /** On every answer: who may read it. */
  headers(): ResponseHeaders {
    return { vary: "Origin", ...this.#grant(this.#request.method) };
  }

  /** The answer to a preflight. */
  preflight(): ResponseHeaders {
    const { access_control_request_method: method = "", access_control_request_headers: wanted = "" } =
      this.#request.headers;
    const vary = ["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"];
    const names = wanted.split(/[\s,]+/).filter((name) => name !== "");
    const grant = names.every((name) => this.#rules.headers.has(name.toLowerCase())) ? this.#grant(method) : {};
    if (grant.access_control_allow_origin === undefined) return { vary };
    const allowed = names.length === 0 ? undefined : names.map(canonical).join(", ");
    return {
      vary,
      ...grant,
      access_control_allow_methods: method.toUpperCase(),
      access_control_allow_headers: allowed,
    };
  }

  #grant(method: string): ResponseHeaders {
    const { origin = "" } = this.#request.headers;
    const named = method.toUpperCase();
    if (origin === "") return {};
    const { methods, origins, credentials } = this.#rules;
    if (!(named === "OPTIONS" || methods.includes(named)) || !this.#matches(origin)) return {};
    return {
      access_control_allow_origin: origins.includes("*") ? "*" : origin,
      access_control_allow_credentials: credentials ? "true" : undefined,
    };
  }

  /** Without case, and with one `*` in a listed origin standing for anything. */
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

/** Of these the rules are made. */
const ruling = /^access-control-allow-(origin|methods|credentials)$/i;

/** The other configured headers are copied to answers as they are. */
export function copiedHeaders(configured: ConfiguredHeaders): ResponseHeaders {
  const copied = Object.entries(configured).filter(([name]) => !ruling.test(name));
  return Object.fromEntries(copied.map(([name, values]) => [name.toLowerCase().replaceAll("-", "_"), values]));
}
