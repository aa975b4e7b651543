/** The identity of a node. */
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import { type Multiaddr, parseMultiaddr, withPeer } from "../network/swarm/multiaddr.ts";
import type { Swarm } from "../network/swarm/swarm.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { keyText, publicKeyText } from "../storage/repo/identity.ts";
import { protocolVersion } from "../util/agent_version.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type CallOptions, callSignal, type PeerName } from "./common.ts";

export interface IdOptions extends CallOptions {
  /** A peer to connect to and query; by default this node. */
  readonly peerId?: PeerName | undefined;
}

export interface IdResult {
  readonly id: PeerId;
  /** The public key as protobuf in base64; empty if unknown. */
  readonly publicKey: string;
  /** Addresses, each ending in the id; null while this node is offline. */
  readonly addresses: readonly Multiaddr[] | null;
  readonly agentVersion: string;
  readonly protocolVersion: string;
  /** Sorted; null while this node is offline, and for a peer that has announced none. */
  readonly protocols: readonly string[] | null;
}

/**
 * Resolves to the identity of this node, or to what another peer reports about itself.
 *
 * @throws NodeError for an invalid id, and if the other peer cannot be reached
 */
export type IdApi = (options?: IdOptions) => Promise<IdResult>;

/** Whether this node is online. */
export type IsOnlineApi = (options?: CallOptions) => Promise<boolean>;

export function idApi(node: LowLevelNode): IdApi {
  return async ({ peerId, ...options } = {}) => {
    const own = node.repo.identity.peerId;
    const id = peerId === undefined ? own : parsed(peerId);
    if (id.equals(own)) return self(node);
    return options.offline === true ? idOnly(id) : other(node, id, callSignal(options));
  };
}

export function isOnlineApi(node: LowLevelNode): IsOnlineApi {
  return async () => ((await self(node)).addresses?.length ?? 0) > 0;
}

function parsed(peer: PeerName): PeerId {
  try {
    return parsePeerId(String(peer));
  } catch (error) {
    throw new NodeError("INVALID_PEER_ID", "invalid peer id", { cause: error });
  }
}

async function self(node: LowLevelNode): Promise<IdResult> {
  const { identity } = node.repo;
  const network = node.online ? await node.network() : undefined;
  return {
    id: identity.peerId,
    publicKey: publicKeyText(identity),
    addresses: network === undefined ? null : whole(identity.peerId, network.swarm.announcedAddresses()),
    agentVersion: node.agent,
    protocolVersion,
    protocols: network === undefined ? null : network.libp2p.getProtocols().sort(),
  };
}

async function other(node: LowLevelNode, id: PeerId, signal: AbortSignal): Promise<IdResult> {
  if (!node.online) throw failure("PEER_NOT_QUERIED");
  const { swarm } = await node.network();
  try {
    await swarm.connect(id, [], signal);
  } catch (error) {
    const hasNobodyToAsk = NodeError.is(error) && error.code === "ROUTING_TABLE_EMPTY";
    throw hasNobodyToAsk ? failure("PEER_NOT_QUERIED", {}, error) : error;
  }
  return identityOf(swarm, id);
}

/** Describes a peer of which only the id is known. */
const idOnly = (id: PeerId): IdResult => ({
  id,
  publicKey: "",
  addresses: whole(id, []),
  agentVersion: "",
  protocolVersion: "",
  protocols: null,
});

/** Resolves to what a peer reports about itself. */
export async function identityOf(swarm: Pick<Swarm, "peerInfo">, id: PeerId): Promise<IdResult> {
  const { publicKey, addresses, protocols, ...identity } = await swarm.peerInfo(id);
  return {
    ...identity,
    publicKey: publicKey === undefined ? "" : keyText(publicKey),
    addresses: whole(id, addresses),
    protocols: protocols.length === 0 ? null : protocols,
  };
}

const whole = (id: PeerId, addresses: readonly Multiaddr[]): readonly Multiaddr[] =>
  addresses.length === 0 ? [parseMultiaddr(`/p2p/${id}`)] : addresses.map((address) => withPeer(address, id));
