/**
 * What the word `auto` of later versions of the reference (Kubo) stands for: what the document of `AutoConf.URL` says, and where none was
 * fetched yet, or none may be, what is built in.
 */
import type { AutoConfDocument } from "./autoconf/document.ts";
import { bootstrapPeers, domainResolvers } from "./defaults.ts";
import { isObject, type JsonObject } from "./json.ts";

export const AUTO = "auto";

export interface AutoValues {
  readonly Bootstrap: readonly string[];
  readonly "Routing.DelegatedRouters": readonly string[];
  readonly "Ipns.DelegatedPublishers": readonly string[];
  /** URLs of resolvers by domain with a final dot, one of each. */
  readonly "DNS.Resolvers": Readonly<Record<string, string>>;
}

/** Without routers: who asks them tells them what is wanted here, which nobody has said that they may know. */
export const builtIn: AutoValues = {
  Bootstrap: bootstrapPeers,
  "Routing.DelegatedRouters": [],
  "Ipns.DelegatedPublishers": [],
  "DNS.Resolvers": domainResolvers,
};

const DHT = "AminoDHT";
/** By `Routing.Type`: those that this node takes part in itself, for which no router is asked. */
const OWN_SYSTEMS: ReadonlyMap<string, readonly string[]> = new Map(
  ["", "auto", "autoclient", "dht", "dhtclient", "dhtserver"].map((type) => [type, [DHT]]),
);
/** What routers are asked for, and what is published by them. */
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

/** A list with what the word stands for in its place, once. */
export function expandedList(list: readonly string[], meaning: readonly string[]): readonly string[] {
  const at = list.indexOf(AUTO);
  return list.flatMap((each, index) => (each === AUTO ? (index === at ? meaning : []) : [each]));
}

/** Resolvers with what the word stands for beside them: one that was given for a domain stays. */
export function expandedResolvers(
  resolvers: Readonly<Record<string, unknown>>,
  meaning: AutoValues["DNS.Resolvers"],
): Readonly<Record<string, unknown>> {
  const given = Object.entries(resolvers).filter(([, address]) => address !== AUTO);
  if (given.length === Object.keys(resolvers).length) return resolvers;
  return { ...meaning, ...Object.fromEntries(given) };
}

const LISTS = ["Bootstrap", "Routing.DelegatedRouters", "Ipns.DelegatedPublishers"] as const;

/** Keys in whose values the word may stand. */
export const autoKeys = [...LISTS, "DNS.Resolvers"] as const;

/** The same document with what the word stands for in its place. */
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

/** Where there is such a value. */
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
