/** A provider of a block, as a router reports it. */
import type { PeerId } from "../../formats/peer_id.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";

export interface ProviderRecord {
  readonly id: PeerId;
  /** Addresses that do not end in the id; empty if they have to be looked up. */
  readonly addresses: readonly Multiaddr[];
  /**
   * Ways to fetch blocks from the provider, in lower case: see `transports`. Empty if the router
   * does not report them, like a DHT.
   */
  readonly protocols: readonly string[];
}

/** Names of the ways to fetch blocks from a provider, as in the multicodec table. */
export const transports = { bitswap: "transport-bitswap", gateway: "transport-ipfs-gateway-http" } as const;

/** Whether bitswap can fetch blocks from a provider; also true if the ways are unknown. */
export const speaksBitswap = ({ protocols }: Pick<ProviderRecord, "protocols">): boolean =>
  protocols.length === 0 || protocols.includes(transports.bitswap);
