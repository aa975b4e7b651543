/** The exchange of blocks. */
import type { CID } from "multiformats/cid";
import { parseCid } from "../formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { type CallOptions, callSignal, listOf, type PeerName } from "./common.ts";

export interface BitswapStatOptions extends CallOptions {
  /** Tell what the clients leave out, too. */
  readonly details?: boolean | undefined;
}

/** Of all that happened since the start. Bytes are those of blocks. */
export interface BitswapStatResult {
  /** CIDs that wait to be announced to the routing system. */
  readonly provideBufLen: number;
  readonly wantlist: readonly CID[];
  /** Connected peers that exchange blocks, in the order of their texts. */
  readonly peers: readonly PeerId[];
  readonly blocksReceived: bigint;
  readonly dataReceived: bigint;
  readonly blocksSent: bigint;
  readonly dataSent: bigint;
  readonly dupBlksReceived: bigint;
  readonly dupDataReceived: bigint;
  /** With `details`. */
  readonly messagesReceived?: bigint;
}

/** What was exchanged with a peer while it is connected. */
export interface BitswapLedgerResult {
  readonly peer: PeerId;
  /** The debt ratio: bytes sent for each that came. */
  readonly value: number;
  /** Bytes. */
  readonly sent: bigint;
  readonly recv: bigint;
  /** Blocks, both ways. */
  readonly exchanged: bigint;
}

/** Its methods reject with a NodeError while the node is offline. */
export interface BitswapApi {
  stat(options?: BitswapStatOptions): Promise<BitswapStatResult>;
  /** Blocks that this node wants. */
  wantlist(options?: CallOptions): Promise<readonly CID[]>;
  /** Blocks that a peer wants of this node; those that this node wants when the peer is itself. */
  wantlistForPeer(peer: PeerName, options?: CallOptions): Promise<readonly CID[]>;
  /** Wants blocks no longer: whoever waits for them is told that they are not found. The RPC API of 0.9 has none of it. */
  unwant(cid: CID | string | readonly (CID | string)[], options?: CallOptions): Promise<void>;
  /** Zeros for a peer that is not connected. */
  ledger(peer: PeerName, options?: CallOptions): Promise<BitswapLedgerResult>;
  /** Announces to the routing system what is stored here. @throws NodeError when there is nobody to be told */
  reprovide(options?: CallOptions): Promise<void>;
}

export function bitswapApi(node: LowLevelNode): BitswapApi {
  return {
    async stat({ details } = {}) {
      const { bitswap } = await node.network("client");
      const stat = bitswap.stat();
      return {
        provideBufLen: stat.provideBufLen,
        wantlist: stat.wantlist,
        peers: stat.peers.map(parsePeerId),
        blocksReceived: BigInt(stat.blocksReceived),
        dataReceived: BigInt(stat.dataReceived),
        blocksSent: BigInt(stat.blocksSent),
        dataSent: BigInt(stat.dataSent),
        dupBlksReceived: BigInt(stat.dupBlksReceived),
        dupDataReceived: BigInt(stat.dupDataReceived),
        ...(details === true && { messagesReceived: BigInt(stat.messagesReceived) }),
      };
    },
    wantlist: async () => (await node.network()).bitswap.wantlist(),
    async wantlistForPeer(peer) {
      const { bitswap } = await node.network();
      const id = parsePeerId(String(peer));
      return bitswap.wantlist(id.equals(node.repo.identity.peerId) ? undefined : id);
    },
    async unwant(given) {
      const { bitswap } = await node.network();
      bitswap.unwant(listOf(given).map((cid) => parseCid(String(cid))));
    },
    async ledger(peer) {
      const { bitswap } = await node.network();
      const id = parsePeerId(String(peer));
      const { value, sent, received, exchanged } = bitswap.ledger(id);
      return { peer: id, value, sent: BigInt(sent), recv: BigInt(received), exchanged: BigInt(exchanged) };
    },
    async reprovide(options = {}) {
      const { routing } = await node.network();
      await routing.reprovide(callSignal(options));
    },
  };
}
