/** Bitswap: exchanging blocks with peers. */
import type { CID } from "multiformats/cid";
import { parseCid } from "../formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { type CallOptions, callSignal, listOf, type PeerName } from "./common.ts";

export interface BitswapStatOptions extends CallOptions {
  /** Also return the fields that client libraries leave out. */
  readonly details?: boolean | undefined;
}

/** Counters since the start; bytes count blocks only. */
export interface BitswapStatResult {
  /** Number of CIDs waiting to be announced to the routing system. */
  readonly provideBufLen: number;
  readonly wantlist: readonly CID[];
  /** Connected peers that speak bitswap, sorted by the text of their ids. */
  readonly peers: readonly PeerId[];
  readonly blocksReceived: bigint;
  readonly dataReceived: bigint;
  readonly blocksSent: bigint;
  readonly dataSent: bigint;
  readonly dupBlksReceived: bigint;
  readonly dupDataReceived: bigint;
  /** Present only with the option `details`. */
  readonly messagesReceived?: bigint;
}

/** The ledger of a peer since it connected. */
export interface BitswapLedgerResult {
  readonly peer: PeerId;
  /** The debt ratio: bytes sent divided by bytes received (plus one). */
  readonly value: number;
  /** Bytes sent to the peer; `recv`: bytes received from it. */
  readonly sent: bigint;
  readonly recv: bigint;
  /** Number of blocks exchanged, in both directions. */
  readonly exchanged: bigint;
}

/** All methods reject with a NodeError while the node is offline. */
export interface BitswapApi {
  stat(options?: BitswapStatOptions): Promise<BitswapStatResult>;
  /** Resolves to the wantlist of this node. */
  wantlist(options?: CallOptions): Promise<readonly CID[]>;
  /**
   * Resolves to the wantlist that a peer has sent to this node; for the node's own id, to the
   * wantlist of this node.
   */
  wantlistForPeer(peer: PeerName, options?: CallOptions): Promise<readonly CID[]>;
  /**
   * Removes blocks from the wantlist; pending reads of them fail as not found. Not part of the RPC
   * API of 0.9.
   */
  unwant(cid: CID | string | readonly (CID | string)[], options?: CallOptions): Promise<void>;
  /** Resolves to the ledger of a peer; all fields are zero if it is not connected. */
  ledger(peer: PeerName, options?: CallOptions): Promise<BitswapLedgerResult>;
  /**
   * Announces the stored blocks to the routing system. @throws NodeError when there are no peers to
   * announce to
   */
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
