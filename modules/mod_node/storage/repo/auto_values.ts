/**
 * The meaning of the value `auto`, which Kubo introduced. It comes from the document at
 * `AutoConf.URL`. Without a document, or when fetching is disabled, it comes from built-in values.
 */
import type { AutoConfDocument } from "./autoconf/document.ts";
import { bootstrapPeers, domainResolvers } from "./defaults.ts";
import { isObject, type JsonObject } from "./json.ts";

export const AUTO = "auto";

export interface AutoValues {
  readonly Bootstrap: readonly string[];
  readonly "Routing.DelegatedRouters": readonly string[];
  readonly "Ipns.DelegatedPublishers": readonly string[];
  /** One URL of a resolver for each domain with a final dot. */
  readonly "DNS.Resolvers": Readonly<Record<string, string>>;
}

/** The peers of Kubo 0.43, which have QUIC addresses of version 1. */
const peers: readonly string[] = [
  ...bootstrapPeers.map((address) => address.replace("/quic/", "/quic-v1/")),
  "/dnsaddr/va1.bootstrap.libp2p.io/p2p/12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8",
];

/**
 * The built-in values. They contain no routers: requests to a router disclose what the node is
 * looking for, and the operator has not agreed to that.
 */
export const builtIn: AutoValues = {
  Bootstrap: peers,
  "Routing.DelegatedRouters": [],
  "Ipns.DelegatedPublishers": [],
  "DNS.Resolvers": domainResolvers,
};

const DHT = "AminoDHT";
/**
 * Systems that this node takes part in itself, by `Routing.Type`. Routers for these systems are not
 * used.
 */
const OWN_SYSTEMS: ReadonlyMap<string, readonly string[]> = new Map(
  ["", "auto", "autoclient", "dht", "dhtclient", "dhtserver"].map((type) => [type, [DHT]]),
);
/** Paths for reading from routers, and paths for publishing. */
const READ = ["/routing/v1/providers", "/routing/v1/peers", "/routing/v1/ipns"];
const WRITE = ["/routing/v1/ipns"];

export function autoValues(document: AutoConfDocument | undefined, routingType: string): AutoValues {
  if (document === undefined) return builtIn;
  const own = OWN_SYSTEMS.get(routingType) ?? [];
  const others = [...document.endpoints].filter(([, { systems }]) => !systems.some((name) => own.includes(name)));
  const urls = (of: "read" | "write", known: readonly string[]) =>
    others.flatMap(([base, endpoint]) =>
      endpoint[of].filter((path) => known.includes(path)).map((path) => base + path),
    );
  return {
    Bootstrap: [...new Set(own.flatMap((name) => document.bootstrap.get(name) ?? []))],
    "Routing.DelegatedRouters": urls("read", READ),
    "Ipns.DelegatedPublishers": urls("write", WRITE),
    "DNS.Resolvers": Object.fromEntries(
      [...document.resolvers].flatMap(([domain, all]) => (all.length === 0 ? [] : [[domain, oneOf(all)]])),
    ),
  };
}

const oneOf = (all: readonly string[]): string => all[Math.floor(Math.random() * all.length)] as string;

/**
 * Returns a list with its first `auto` replaced by the meaning, and without other `auto` entries.
 */
export function expandedList(list: readonly string[], meaning: readonly string[]): readonly string[] {
  const at = list.indexOf(AUTO);
  return list.flatMap((each, index) => (each === AUTO ? (index === at ? meaning : []) : [each]));
}

/**
 * Returns resolvers with the meaning of `auto` added. A resolver that is given for a domain stays.
 */
export function expandedResolvers(
  resolvers: Readonly<Record<string, unknown>>,
  meaning: AutoValues["DNS.Resolvers"],
): Readonly<Record<string, unknown>> {
  const given = Object.entries(resolvers).filter(([, address]) => address !== AUTO);
  if (given.length === Object.keys(resolvers).length) return resolvers;
  return { ...meaning, ...Object.fromEntries(given) };
}

const LISTS = ["Bootstrap", "Routing.DelegatedRouters", "Ipns.DelegatedPublishers"] as const;

/** Keys whose values may contain `auto`. */
export const autoKeys = [...LISTS, "DNS.Resolvers"] as const;

/** Returns a document in which every `auto` is replaced by its meaning. */
export function withoutAuto(document: JsonObject, meanings: AutoValues): JsonObject {
  let expanded = document;
  for (const path of LISTS) {
    expanded = changed(expanded, path.split("."), (list) =>
      Array.isArray(list) ? expandedList(list, meanings[path]) : list,
    );
  }
  return changed(expanded, ["DNS", "Resolvers"], (resolvers) =>
    isObject(resolvers) ? expandedResolvers(resolvers, meanings["DNS.Resolvers"]) : resolvers,
  );
}

/** Changes the value at a path if it exists. */
function changed(
  document: JsonObject,
  [name = "", ...below]: readonly string[],
  change: (value: unknown) => unknown,
): JsonObject {
  if (!Object.hasOwn(document, name)) return document;
  const value = document[name];
  if (below.length === 0) return { ...document, [name]: change(value) };
  return isObject(value) ? { ...document, [name]: changed(value, below, change) } : document;
}
