/** What a router says of a peer, checked. */
import { type PeerId, parsePeerId } from "../../../formats/peer_id.ts";
import { isObject } from "../../../storage/repo/json.ts";
import type { PeerAddresses } from "../../kad/events.ts";
import { type Multiaddr, namesPeer, parseMultiaddr, splitPeer } from "../../swarm/multiaddr.ts";
import { type PeerRecord, recordFilter } from "../peer_record.ts";
import { transports } from "../provider_record.ts";

/** Those of former versions have their one protocol as `Protocol`. */
const SCHEMAS: readonly unknown[] = ["peer", "bitswap", "graphsync-filecoinv1"];
/** Addresses and protocols of a record; further ones are left out. */
const MAX_ADDRESSES = 50;
const MAX_PROTOCOLS = 16;
/** Characters of the name of a protocol. */
const MAX_PROTOCOL_LENGTH = 100;

/**
 * What is asked for, each list in order, as caches go by the URL: addresses over transports that this node has, and ways
 * to get blocks that it knows.
 */
const addresses = ["!webrtc-direct", "!webtransport", "quic-v1", "tcp", "unknown"];
const protocols = [transports.bitswap, transports.gateway, "unknown"];

const filterOf = (wanted: readonly string[]) => {
  const text = new URLSearchParams({ "filter-addrs": addresses.join(","), "filter-protocols": wanted.join(",") });
  if (wanted.length === 0) text.delete("filter-protocols");
  return { query: text.toString().replaceAll("%2C", ","), filter: recordFilter({ addresses, protocols: wanted }) };
};

export type AskedFor = ReturnType<typeof filterOf>;

/** Providers, with gateways among them or without, and peers. */
export const providersAsked = filterOf(protocols);
export const bitswapAsked = filterOf(protocols.filter((name) => name !== transports.gateway));
export const peersAsked = filterOf([]);

/** The peer of a record, with the addresses that can be read; undefined for what is no record, or is not wanted. */
export function peerOf(record: unknown, { filter }: AskedFor): PeerAddresses | undefined {
  if (!isObject(record) || !SCHEMAS.includes(record.Schema)) return undefined;
  const { ID, Addrs, Protocol, Protocols = Protocol } = record;
  if (typeof ID !== "string") return undefined;
  const id = idIn(ID);
  if (id === undefined) return undefined;
  const kept = filter({
    Schema: "peer",
    ID,
    Addrs: texts(Addrs).slice(0, MAX_ADDRESSES),
    Protocols: protocolsIn(Protocols),
  } satisfies PeerRecord);
  if (kept === undefined) return undefined;
  return { id, multiaddrs: kept.Addrs.flatMap((text) => addressOf(id, text)), protocols: kept.Protocols };
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

/** Without the id of that peer at its end; none where it ends in another, or cannot be read. */
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
