/** Validates the records of peers that a router sends. */
import { type PeerId, parsePeerId } from "../../../formats/peer_id.ts";
import { isObject } from "../../../storage/repo/json.ts";
import type { PeerAddresses } from "../../kad/events.ts";
import { type Multiaddr, namesPeer, parseMultiaddr, splitPeer } from "../../swarm/multiaddr.ts";
import { type PeerRecord, recordFilter } from "../peer_record.ts";
import { transports } from "../provider_record.ts";

/** Accepted schemas. Records of earlier versions have a single protocol as `Protocol`. */
const SCHEMAS: readonly unknown[] = ["peer", "bitswap", "graphsync-filecoinv1"];
/** Maximum number of addresses and of protocols of a record; further ones are ignored. */
const MAX_ADDRESSES = 50;
const MAX_PROTOCOLS = 16;
/** Maximum length of a protocol name in characters. */
const MAX_PROTOCOL_LENGTH = 100;

/**
 * Filters of requests: addresses over transports that this node has, and known ways to fetch
 * blocks. The order is fixed, because caches use the URL as their key.
 */
const addresses = ["!webrtc-direct", "!webtransport", "quic-v1", "tcp", "unknown"];
const protocols = [transports.bitswap, transports.gateway, "unknown"];

const filterOf = (wanted: readonly string[]) => {
  const text = new URLSearchParams({ "filter-addrs": addresses.join(","), "filter-protocols": wanted.join(",") });
  if (wanted.length === 0) text.delete("filter-protocols");
  return { query: text.toString().replaceAll("%2C", ","), filter: recordFilter({ addresses, protocols: wanted }) };
};

export type RequestFilter = ReturnType<typeof filterOf>;

/** Filters for providers with and without gateways, and for peers. */
export const providerFilter = filterOf(protocols);
export const bitswapFilter = filterOf(protocols.filter((name) => name !== transports.gateway));
export const peerFilter = filterOf([]);

/**
 * Returns the peer of a record, with its readable addresses; undefined for an invalid record, and
 * for one that the filter excludes.
 */
export function peerOf(record: unknown, { filter }: RequestFilter): PeerAddresses | undefined {
  if (!isObject(record) || !SCHEMAS.includes(record.Schema)) return undefined;
  const { ID, Addrs, Protocol, Protocols = Protocol } = record;
  if (typeof ID !== "string") return undefined;
  const id = idIn(ID);
  if (id === undefined) return undefined;
  const matching = filter({
    Schema: "peer",
    ID,
    Addrs: texts(Addrs).slice(0, MAX_ADDRESSES),
    Protocols: protocolsIn(Protocols),
  } satisfies PeerRecord);
  if (matching === undefined) return undefined;
  return { id, multiaddrs: matching.Addrs.flatMap((text) => addressOf(id, text)), protocols: matching.Protocols };
}

const protocolsIn = (value: unknown): readonly string[] =>
  texts(typeof value === "string" ? [value] : value)
    .filter((name) => name !== "" && name.length <= MAX_PROTOCOL_LENGTH)
    .slice(0, MAX_PROTOCOLS)
    .map((name) => name.toLowerCase());

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

function idIn(text: string): PeerId | undefined {
  try {
    return parsePeerId(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns an address without the id of that peer at its end; an empty list if it ends in another
 * id, or cannot be parsed.
 */
function addressOf(id: PeerId, text: string): readonly Multiaddr[] {
  try {
    const whole = parseMultiaddr(text);
    if (!namesPeer(whole)) return [whole];
    const { id: named, address } = splitPeer(whole);
    return named.equals(id) && address !== undefined ? [address] : [];
  } catch {
    return [];
  }
}
