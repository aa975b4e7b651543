/**
 * Accesses internals of gossipsub, to read peers no faster than their messages are handled, and to
 * reopen broken streams. The library itself reads a stream as fast as data arrives, and never
 * reopens a broken stream to a peer.
 */
import type { GossipSub } from "@libp2p/gossipsub";
import type { RPC } from "@libp2p/gossipsub/message";
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";

export const patch: Patch = {
  library: "@libp2p/gossipsub",
  version: "17.1.1",
  without: "data from peers is not limited, and a peer whose stream broke misses messages until it reconnects",
};

export interface GossipsubInternals {
  isStarted(): boolean;
  /** Called for each stream that a peer opens. */
  onIncomingStream(stream: Stream, connection: Connection): void;
  /** Called for a peer that speaks the protocol: opens a stream to it unless there is one. */
  onPeerConnected(id: PeerId, connection: Connection): void;
  /**
   * @throws Error for bytes that are not an RPC, and for an RPC that exceeds the library's limits
   */
  decodeRpc(bytes: Uint8Array): RPC;
  /** Resolves when every message of the RPC is validated, delivered and forwarded. */
  handleReceivedRpc(from: PeerId, rpc: RPC): Promise<void>;
}

const METHODS = ["isStarted", "onIncomingStream", "onPeerConnected", "decodeRpc", "handleReceivedRpc"] as const;

/** Returns the router with its internals; undefined if one of them is missing. */
export function internalsOf(router: GossipSub, notices: PatchNotices): (GossipSub & GossipsubInternals) | undefined {
  const whole = router as GossipSub & GossipsubInternals;
  const parts = Object.fromEntries(METHODS.map((name) => [name, whole[name]]));
  return notices.isApplicable(patch, parts) ? whole : undefined;
}
