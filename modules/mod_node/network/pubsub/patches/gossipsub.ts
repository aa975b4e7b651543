/**
 * What this node uses of gossipsub beyond its interface, to read peers no faster than their messages are dealt with and
 * to open streams again that broke. The library reads a stream as fast as it delivers, and gives a peer up for good
 * when the stream to it breaks.
 */
import type { GossipSub } from "@libp2p/gossipsub";
import type { RPC } from "@libp2p/gossipsub/message";
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";

export const patch: Patch = {
  library: "@libp2p/gossipsub",
  version: "17.1.1",
  without: "what peers send is not bounded, and a peer whose stream broke misses messages until it connects again",
};

export interface GossipsubInternals {
  isStarted(): boolean;
  /** Called for each stream that a peer opens. */
  onIncomingStream(stream: Stream, connection: Connection): void;
  /** A peer speaks the protocol: opens a stream to it unless there is one. */
  onPeerConnected(id: PeerId, connection: Connection): void;
  /** @throws Error for bytes that are no RPC, or an RPC beyond the library's bounds */
  decodeRpc(bytes: Uint8Array): RPC;
  /** Resolves when every message of the RPC is validated, delivered and forwarded. */
  handleReceivedRpc(from: PeerId, rpc: RPC): Promise<void>;
}

const METHODS = ["isStarted", "onIncomingStream", "onPeerConnected", "decodeRpc", "handleReceivedRpc"] as const;

/** The router with its internals; undefined where one of them is gone. */
export function internalsOf(router: GossipSub, notices: PatchNotices): (GossipSub & GossipsubInternals) | undefined {
  const whole = router as GossipSub & GossipsubInternals;
  const parts = Object.fromEntries(METHODS.map((name) => [name, whole[name]]));
  return notices.isApplicable(patch, parts) ? whole : undefined;
}
