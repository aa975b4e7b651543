/**
 * Has a listener of QUIC complete several handshakes at a time. The library does one after the other, so that a peer
 * which begins one and goes on with nothing keeps everybody else out for ten seconds.
 */
import type { Listener } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@chainsafe/libp2p-quic",
  version: "2.1.1",
  without: "inbound connections over QUIC are accepted one after the other",
};

/**
 * Handshakes at a time. Each that stands still takes one for ten seconds, so these keep out nobody while fewer than 200 begin in a second;
 * one that waits for a handshake takes some hundred bytes.
 */
const HANDSHAKES = 2048;

interface QuicListener extends Listener {
  /** Accepts connections until it is closed. */
  awaitInboundConnections?(): Promise<void>;
}

/** To be called when it listens. */
export function acceptAtOnce(listener: QuicListener, notices: PatchNotices): void {
  const { awaitInboundConnections } = listener;
  if (!notices.isApplicable(patch, { "listener.awaitInboundConnections": awaitInboundConnections })) return;
  for (let more = 1; more < HANDSHAKES; more += 1) void awaitInboundConnections?.call(listener);
}
