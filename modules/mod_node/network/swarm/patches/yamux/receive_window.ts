/**
 * Widens the receive window of a yamux stream. The library starts with a window of 256 KiB, and
 * sends a window update after each frame, which means one message per message.
 */
import type { Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/yamux",
  version: "8.0.3",
  without: "streams receive more slowly over long distances",
};

/** Name of the multiplexer in connections. */
export const YAMUX = "/yamux/1.0.0";

/** The parts of the library's stream that this patch uses. */
interface YamuxStream {
  recvWindow: number;
  readonly recvWindowCapacity: number;
  sendWindowUpdate(): void;
}

/**
 * Number of bytes that a peer may send before the first window update; twice as many if the library
 * knows the round-trip time.
 */
const INITIAL_WINDOW = 2 * 1024 * 1024;
/**
 * Part of the window that is used up when an update is sent. A distant peer receives the update
 * half a round trip later, and needs enough room until then. Also, the library doubles the window
 * if updates follow each other within four round trips.
 */
const UPDATED_PART = 1 / 8;

/**
 * Prepares a yamux stream that receives much data: starts with a wide window, and updates it when a
 * part of it is used up.
 */
export function widenWindow(stream: Stream, notices: PatchNotices): void {
  const yamux = stream as Stream & Partial<YamuxStream>;
  const { sendWindowUpdate, recvWindow, recvWindowCapacity } = yamux;
  if (!notices.isApplicable(patch, { sendWindowUpdate, recvWindow, recvWindowCapacity })) return;
  yamux.recvWindow = Math.max(recvWindow ?? 0, INITIAL_WINDOW);
  sendWindowUpdate?.call(stream);
  yamux.sendWindowUpdate = () => {
    const { recvWindow: all = 0, recvWindowCapacity: left = 0 } = yamux;
    if (left <= all * (1 - UPDATED_PART)) sendWindowUpdate?.call(stream);
  };
}
