/** Records of routing v1 in their wire format, and filters for them (IPIP-484). */

export interface PeerRecord {
  readonly Schema: "peer";
  readonly ID: string;
  /** Addresses that do not end in the id. */
  readonly Addrs: readonly string[];
  /** Ways to fetch blocks from the peer: see `ProviderRecord`. */
  readonly Protocols: readonly string[];
}

/** Values in lower case; an empty list filters nothing. */
export interface RecordFilters {
  /**
   * Values of `filter-addrs`: names of protocols in addresses. A name with `!` before it excludes
   * addresses.
   */
  readonly addresses: readonly string[];
  /** Values of `filter-protocols`. */
  readonly protocols: readonly string[];
}

/** Stands for a record without addresses, or without protocols. */
const UNKNOWN = "unknown";

/**
 * Returns a function that reduces a record to the requested addresses, and returns undefined for a
 * record that is not requested.
 */
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
    const matching = Addrs.filter(fits);
    return matching.length === 0 ? undefined : { ...record, Addrs: matching };
  };
}
