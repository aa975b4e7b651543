/**
 * Parses the document at `AutoConf.URL`, which defines the value `auto`, in the format of Kubo. It
 * has bootstrap peers, resolvers and HTTP routers of a network, grouped by system.
 */
import { failure } from "../../../util/errors.ts";
import { isObject } from "../json.ts";

export interface AutoConfDocument {
  readonly version: number;
  /**
   * Milliseconds after which the document should be fetched again; undefined when the document does
   * not say.
   */
  readonly ttlMs: number | undefined;
  /** Bootstrap peers by the name of a system. */
  readonly bootstrap: ReadonlyMap<string, readonly string[]>;
  /** URLs of resolvers by domain with a final dot. */
  readonly resolvers: ReadonlyMap<string, readonly string[]>;
  /** HTTP routers by their base URL. */
  readonly endpoints: ReadonlyMap<string, AutoConfEndpoint>;
}

export interface AutoConfEndpoint {
  /** Names of the systems that the router serves. */
  readonly systems: readonly string[];
  /** Paths for reading, and paths for writing. */
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** The supported version of the format. */
const SCHEMA = 1;

/**
 * Parses a document.
 * @throws NodeError that says what is wrong with it
 */
export function parseAutoConf(text: string): AutoConfDocument {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch (cause) {
    throw failure("AUTOCONF_INVALID", { reason: `it is not JSON: ${(cause as Error).message}` }, cause);
  }
  if (!isObject(whole)) throw failure("AUTOCONF_INVALID", { reason: "it is not an object" });
  const version = number(whole.AutoConfVersion, "AutoConfVersion");
  if (version === 0) throw failure("AUTOCONF_INVALID", { reason: "it has no AutoConfVersion" });
  const schema = number(whole.AutoConfSchema, "AutoConfSchema");
  if (schema !== SCHEMA)
    throw failure("AUTOCONF_INVALID", { reason: `its AutoConfSchema is ${schema}, but only ${SCHEMA} is supported` });
  const ttl = number(whole.AutoConfTTL, "AutoConfTTL");
  return {
    version,
    ttlMs: ttl > 0 ? ttl * 1000 : undefined,
    bootstrap: entries(whole.SystemRegistry, "SystemRegistry", ({ NativeConfig: native }, at) =>
      isObject(native) ? texts(native.Bootstrap, `${at}.NativeConfig.Bootstrap`) : [],
    ),
    resolvers: new Map(
      Object.entries(object(whole.DNSResolvers, "DNSResolvers")).map(([domain, urls]) => [
        domain,
        texts(urls, `DNSResolvers.${domain}`).map((url) => urlOf(url, `DNSResolvers.${domain}`)),
      ]),
    ),
    endpoints: endpointsOf(whole.DelegatedEndpoints),
  };
}

function endpointsOf(given: unknown): ReadonlyMap<string, AutoConfEndpoint> {
  const name = "DelegatedEndpoints";
  const found = entries(given, name, ({ Systems, Read, Write }, at) => ({
    systems: texts(Systems, `${at}.Systems`),
    read: texts(Read, `${at}.Read`).map((path) => pathOf(path, `${at}.Read`)),
    write: texts(Write, `${at}.Write`).map((path) => pathOf(path, `${at}.Write`)),
  }));
  return new Map([...found].map(([url, endpoint]) => [urlOf(url, name).replace(/\/+$/, ""), endpoint]));
}

function entries<T>(
  given: unknown,
  name: string,
  take: (value: Readonly<Record<string, unknown>>, at: string) => T,
): ReadonlyMap<string, T> {
  return new Map(
    Object.entries(object(given, name)).map(([key, value]) => {
      const at = `${name}.${key}`;
      return [key, take(object(value, at), at)];
    }),
  );
}

function object(value: unknown, at: string): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw failure("AUTOCONF_INVALID", { reason: `its ${at} is not an object` });
  return value;
}

function number(value: unknown, at: string): number {
  if (value === undefined || value === null) return 0;
  if (!Number.isSafeInteger(value)) throw failure("AUTOCONF_INVALID", { reason: `its ${at} is not a whole number` });
  return value as number;
}

function texts(value: unknown, at: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw failure("AUTOCONF_INVALID", { reason: `its ${at} is not a list of texts` });
}

function urlOf(text: string, at: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return text;
  throw failure("AUTOCONF_INVALID", { reason: `${text} of its ${at} is not an http or https URL` });
}

function pathOf(text: string, at: string): string {
  if (text.startsWith("/")) return text;
  throw failure("AUTOCONF_INVALID", { reason: `${text} of its ${at} does not begin with a slash` });
}
