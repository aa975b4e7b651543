/** Dials a peer that the configuration names. */
import type { Libp2p } from "@libp2p/interface";
import { type Multiaddr, type PeerAddress, withPeer } from "./multiaddr.ts";

/** The part of libp2p that dials. */
export type Dialer = Pick<Libp2p, "dial" | "getPeers" | "getConnections" | "addEventListener" | "removeEventListener">;

export interface PeerToDial {
  readonly id: PeerAddress["id"];
  /** Addresses without the id. If it is empty, the addresses in the peer store are dialled. */
  readonly addresses: readonly Multiaddr[];
}

export function dialPeer(libp2p: Dialer, { id, addresses }: PeerToDial, signal: AbortSignal): Promise<unknown> {
  const full = addresses.map((address) => withPeer(address, id));
  return libp2p.dial(full.length === 0 ? id : full, { signal });
}
