/** Who has a block, as a router tells it. */
import type { PeerId } from "../../formats/peer_id.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";

export interface ProviderRecord {
  readonly id: PeerId;
  /** Without the id at the end; none where it has to be looked up. */
  readonly addresses: readonly Multiaddr[];
  /** How the blocks can be had, in small letters: see `transports`. Empty where the router does not tell, as a DHT. */
  readonly protocols: readonly string[];
}

/** Names of the ways in which a provider gives blocks, as the registry of multicodec has them. */
export const transports = { bitswap: "transport-bitswap", gateway: "transport-ipfs-gateway-http" } as const;

/** Whether bitswap can get blocks there: also where nobody tells how. */
export const speaksBitswap = ({ protocols }: Pick<ProviderRecord, "protocols">): boolean =>
  protocols.length === 0 || protocols.includes(transports.bitswap);
