/** Streams that are read no faster than what comes is dealt with. */
import type { Stream } from "@libp2p/interface";

/** A paused stream still gets what its peer was allowed to send: as much as the window of a multiplexer, with room. */
const pausedBytes = 32 * 1024 * 1024;

/** To be called for every stream that is ever paused: the library's own bound is less than a window, and resets it. */
export function allowBuffering(stream: Stream): void {
  stream.maxReadBufferLength = pausedBytes;
}

/** Nothing more is delivered. Without effect on a stream whose reading is over. */
export function pause(stream: Stream): void {
  if (stream.readStatus === "readable") stream.pause();
}

/** What waits is delivered at once. Without effect on a stream whose reading is over. */
export function resume(stream: Stream): void {
  if (stream.readStatus !== "paused") return;
  stream.resume();
  // Paused again by what was delivered: the library told the peer to go on nevertheless. Nothing waits any more, so
  // that this only takes it back.
  if (isPaused(stream)) {
    stream.resume();
    stream.pause();
  }
}

const isPaused = ({ readStatus }: Stream): boolean => readStatus === "paused";

/**
 * Resolves when a stream takes more again, to be waited for when `send` gave false. The library's `onDrain` waits only
 * once: after that it resolves at once, whatever the stream takes.
 *
 * @throws what ended the stream; the reason of the signal
 */
export function drained(stream: Stream, signal?: AbortSignal): Promise<void> {
  if (!stream.writableNeedsDrain) return Promise.resolve();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const heard = new AbortController();
  const once = { once: true, signal: heard.signal };
  stream.addEventListener("drain", () => resolve(), once);
  stream.addEventListener("close", ({ error }) => reject(error ?? new Error("the stream is closed")), once);
  signal?.addEventListener("abort", () => reject(signal.reason), once);
  if (signal?.aborted === true) reject(signal.reason);
  return promise.finally(() => heard.abort());
}
