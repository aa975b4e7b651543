/**
 * Makes a QUIC listener complete several handshakes concurrently. The library completes one after
 * the other, so a peer that begins a handshake and stalls keeps all others out for ten seconds.
 */
import type { Listener } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@chainsafe/libp2p-quic",
  version: "2.1.1",
  without: "inbound connections over QUIC are accepted one after the other",
};

/**
 * Number of concurrent handshakes. A stalled handshake occupies one for ten seconds, so nobody is
 * kept out while fewer than 200 stall per second. An idle acceptor takes some hundred bytes.
 */
const HANDSHAKES = 2048;

interface QuicListener extends Listener {
  /** Accepts connections until the listener is closed. */
  awaitInboundConnections?(): Promise<void>;
}

/** Must be called when the listener is listening. */
export function acceptConcurrently(listener: QuicListener, notices: PatchNotices): void {
  const { awaitInboundConnections } = listener;
  if (!notices.isApplicable(patch, { "listener.awaitInboundConnections": awaitInboundConnections })) return;
  for (let more = 1; more < HANDSHAKES; more += 1) void awaitInboundConnections?.call(listener);
}
