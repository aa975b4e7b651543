/**
 * Widens the receive window of a yamux stream. The library sends a window update after each frame, a message for a
 * message, and starts with a window of 256 KiB.
 */
import type { Stream } from "@libp2p/interface";
import type { Patch, PatchNotices } from "../notices.ts";

export const patch: Patch = {
  library: "@libp2p/yamux",
  version: "8.0.3",
  without: "streams receive more slowly over long distances",
};

/** The multiplexer whose streams can be widened, as connections name it. */
export const YAMUX = "/yamux/1.0.0";

/** What is used of the library's stream. */
interface YamuxStream {
  recvWindow: number;
  readonly recvWindowCapacity: number;
  sendWindowUpdate(): void;
}

/** Bytes that a peer may send before the first window update; twice as many where the library knows how far away it is. */
const INITIAL_WINDOW = 2 * 1024 * 1024;
/**
 * Part of the window that is used when an update is sent. A peer that is far away hears of it half a round trip later, and has to have
 * enough left until then; and the library doubles the window with updates that follow each other within four round trips.
 */
const UPDATED_PART = 1 / 8;

/** For streams of yamux that receive much: begins with a wide window, and updates it when a part of it is used. */
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
