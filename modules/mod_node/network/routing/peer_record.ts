/** Records of routing v1 as they are sent, and which of them a client wants (IPIP-484). */

export interface PeerRecord {
  readonly Schema: "peer";
  readonly ID: string;
  /** Without the id at the end. */
  readonly Addrs: readonly string[];
  /** See `ProviderRecord`. */
  readonly Protocols: readonly string[];
}

/** In small letters; an empty list is no filter. */
export interface RecordFilters {
  /** `filter-addrs`: names of protocols in addresses. One with `!` before it is not wanted. */
  readonly addresses: readonly string[];
  /** `filter-protocols`. */
  readonly protocols: readonly string[];
}

/** What stands for a record without addresses, or without protocols. */
const UNKNOWN = "unknown";

/** Gives a record with the addresses that are wanted; undefined where it is not wanted. */
export function recordFilter({ addresses, protocols }: RecordFilters): (record: PeerRecord) => PeerRecord | undefined {
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
