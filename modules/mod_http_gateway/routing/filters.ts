/** Which records, and which of their addresses, a client wants: `filter-addrs` and `filter-protocols` (IPIP-484). */
import type { PeerRecord } from "./look_ups.ts";

/** The record with the addresses that are wanted; undefined where it is not wanted. */
export type Filter = (record: PeerRecord) => PeerRecord | undefined;

/** What stands for a record without addresses, or without protocols. */
const UNKNOWN = "unknown";

export function filterOf(query: URLSearchParams): Filter {
  const addresses = namesOf(query, "filter-addrs");
  const protocols = namesOf(query, "filter-protocols");
  const refused = addresses.filter((name) => name.startsWith("!")).map((name) => name.slice(1));
  const wanted = addresses.filter((name) => !name.startsWith("!"));

  function fits(address: string): boolean {
    const names = address.toLowerCase().split("/");
    const has = (name: string) => names.includes(name);
    return !refused.some(has) && (wanted.length === 0 || wanted.some(has));
  }

  return (record) => {
    const { Addrs, Protocols } = record;
    const spoken = Protocols.length === 0 ? [UNKNOWN] : Protocols.map((name) => name.toLowerCase());
    if (protocols.length > 0 && !protocols.some((name) => spoken.includes(name))) return undefined;
    if (addresses.length === 0) return record;
    if (Addrs.length === 0) return wanted.includes(UNKNOWN) ? record : undefined;
    const kept = Addrs.filter(fits);
    return kept.length === 0 ? undefined : { ...record, Addrs: kept };
  };
}

const namesOf = (query: URLSearchParams, parameter: string): readonly string[] =>
  query
    .getAll(parameter)
    .flatMap((list) => list.toLowerCase().split(","))
    .map((name) => name.trim())
    .filter((name) => name !== "");
