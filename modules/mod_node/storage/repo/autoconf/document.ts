/**
 * The document that the word `auto` is looked up in (`AutoConf.URL`), in the form of Kubo: bootstrap peers, resolvers and routers over
 * HTTP of a network, each by the systems that it belongs to.
 */
import { NodeError } from "../../../util/errors.ts";
import { isObject } from "../json.ts";

export interface AutoConfDocument {
  readonly version: number;
  /** Milliseconds after which its server wants to be asked again; undefined where it does not say. */
  readonly ttlMs: number | undefined;
  /** Bootstrap peers by the name of a system. */
  readonly bootstrap: ReadonlyMap<string, readonly string[]>;
  /** URLs of resolvers by domain with a final dot. */
  readonly resolvers: ReadonlyMap<string, readonly string[]>;
  /** Routers over HTTP by their base URL. */
  readonly endpoints: ReadonlyMap<string, AutoConfEndpoint>;
}

export interface AutoConfEndpoint {
  /** Names of the systems that it answers for. */
  readonly systems: readonly string[];
  /** Paths that are asked, and those that are written to. */
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** What is understood of the form of the document. */
const SCHEMA = 1;

/** @throws NodeError that says what is wrong with it */
export function parseAutoConf(text: string): AutoConfDocument {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch (cause) {
    throw new NodeError(`it is no JSON: ${(cause as Error).message}`, { cause });
  }
  if (!isObject(whole)) throw new NodeError("it is no object");
  const version = number(whole.AutoConfVersion, "AutoConfVersion");
  if (version === 0) throw new NodeError("it has no AutoConfVersion");
  const schema = number(whole.AutoConfSchema, "AutoConfSchema");
  if (schema !== SCHEMA) throw new NodeError(`its AutoConfSchema is ${schema}, and ${SCHEMA} is understood`);
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
  if (!isObject(value)) throw new NodeError(`its ${at} is no object`);
  return value;
}

function number(value: unknown, at: string): number {
  if (value === undefined || value === null) return 0;
  if (!Number.isSafeInteger(value)) throw new NodeError(`its ${at} is no whole number`);
  return value as number;
}

function texts(value: unknown, at: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new NodeError(`its ${at} is no list of texts`);
}

function urlOf(text: string, at: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return text;
  throw new NodeError(`${text} of its ${at} is no URL of http or https`);
}

function pathOf(text: string, at: string): string {
  if (text.startsWith("/")) return text;
  throw new NodeError(`${text} of its ${at} does not begin with a slash`);
}
