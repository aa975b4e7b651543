/** Back-pressure on streams: they are read no faster than what they bring is handled. */
import type { Stream } from "@libp2p/interface";

/** Bytes that a paused stream may hold: as much as the widest window lets a peer send, and more. */
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;

/**
 * To be called for every stream that is ever paused. The library's own bound is below a window, and resets the stream.
 */
export function allowBuffering(stream: Stream): void {
  stream.maxReadBufferLength = MAX_BUFFERED_BYTES;
}

/** Nothing more is delivered. No effect on a stream that is read to its end. */
export function pause(stream: Stream): void {
  if (stream.readStatus === "readable") stream.pause();
}

/** What waits is delivered at once. No effect on a stream that is read to its end. */
export function resume(stream: Stream): void {
  if (stream.readStatus !== "paused") return;
  stream.resume();
  // A listener may have paused it again. The library has opened the window all the same; as nothing waits now,
  // this delivers nothing and only takes that back.
  if (isPaused(stream)) {
    stream.resume();
    stream.pause();
  }
}

const isPaused = ({ readStatus }: Stream): boolean => readStatus === "paused";

/**
 * Resolves when a stream takes more again, to be awaited when `send` returned false. The library's `onDrain` waits only
 * the first time: after that it resolves at once, however full the stream is.
 *
 * @throws what ended the stream; the reason of the signal
 */
export function drained(stream: Stream, signal?: AbortSignal): Promise<void> {
  if (!stream.writableNeedsDrain) return Promise.resolve();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const settled = new AbortController();
  const once = { once: true, signal: settled.signal };
  stream.addEventListener("drain", () => resolve(), once);
  stream.addEventListener("close", ({ error }) => reject(error ?? new Error("the stream is closed")), once);
  signal?.addEventListener("abort", () => reject(signal.reason), once);
  if (signal?.aborted === true) reject(signal.reason);
  return promise.finally(() => settled.abort());
}
