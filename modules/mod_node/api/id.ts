/** The identity of a node. */
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { type Multiaddr, parseMultiaddr, withPeer } from "../network/swarm/multiaddr.ts";
import type { Swarm } from "../network/swarm/swarm.ts";
import { keyText, publicKeyText } from "../storage/repo/identity.ts";
import { protocolVersion } from "../util/agent_version.ts";
import { NodeError } from "../util/errors.ts";
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
 * Who this node is, or what another peer has told of itself.
 *
 * @throws NodeError of an id that is none, and where the other peer cannot be reached
 */
export type IdApi = (options?: IdOptions) => Promise<IdResult>;

/** Whether this node is online. */
export type IsOnlineApi = (options?: CallOptions) => Promise<boolean>;

const OFFLINE_TEXT = `'ipfs id' currently cannot query information on remote
peers without a running daemon; we are working to fix this.
In the meantime, if you want to query remote peers using 'ipfs id',
please run the daemon:

    ipfs daemon &
    ipfs id QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
`;

export function idApi(node: LowLevelNode): IdApi {
  return async ({ peerId, ...options } = {}) => {
    const own = node.repo.identity.peerId;
    const id = peerId === undefined ? own : parsed(peerId);
    return id.equals(own) ? self(node) : other(node, id, callSignal(options));
  };
}

export function isOnlineApi(node: LowLevelNode): IsOnlineApi {
  return async () => ((await self(node)).addresses?.length ?? 0) > 0;
}

function parsed(peer: PeerName): PeerId {
  try {
    return parsePeerId(String(peer));
  } catch (error) {
    throw new NodeError("invalid peer id", { cause: error });
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
  if (!node.online) throw new NodeError(OFFLINE_TEXT);
  const { swarm } = await node.network();
  try {
    await swarm.connect(id, [], signal);
  } catch (error) {
    const hasNobodyToAsk = NodeError.is(error) && error.code === "ROUTING_TABLE_EMPTY";
    throw hasNobodyToAsk ? new NodeError(OFFLINE_TEXT, { cause: error }) : error;
  }
  return toldBy(swarm, id);
}

/** What a peer has told of itself. */
export async function toldBy(swarm: Pick<Swarm, "peerInfo">, id: PeerId): Promise<IdResult> {
  const { publicKey, addresses, protocols, ...told } = await swarm.peerInfo(id);
  return {
    ...told,
    publicKey: publicKey === undefined ? "" : keyText(publicKey),
    addresses: whole(id, addresses),
    protocols: protocols.length === 0 ? null : protocols,
  };
}

const whole = (id: PeerId, addresses: readonly Multiaddr[]): readonly Multiaddr[] =>
  addresses.length === 0 ? [parseMultiaddr(`/p2p/${id}`)] : addresses.map((address) => withPeer(address, id));
