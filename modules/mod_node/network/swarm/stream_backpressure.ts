/** Applies back-pressure to streams, so that they are read no faster than their data is handled. */
import type { Stream } from "@libp2p/interface";

/**
 * Maximum number of bytes that a paused stream may buffer: more than the widest window lets a peer
 * send.
 */
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;

/**
 * Must be called for every stream that may be paused. The library's own limit is smaller than a
 * window, and resets the stream.
 */
export function allowBuffering(stream: Stream): void {
  stream.maxReadBufferLength = MAX_BUFFERED_BYTES;
}

/** Stops the delivery of data. Has no effect on a stream that was read to its end. */
export function pause(stream: Stream): void {
  if (stream.readStatus === "readable") stream.pause();
}

/** Delivers buffered data at once. Has no effect on a stream that was read to its end. */
export function resume(stream: Stream): void {
  if (stream.readStatus !== "paused") return;
  stream.resume();
  // A listener may have paused the stream again, but the library has opened the window
  // nevertheless. Since the buffer is empty now, this delivers nothing and only reverts the window.
  if (isPaused(stream)) {
    stream.resume();
    stream.pause();
  }
}

const isPaused = ({ readStatus }: Stream): boolean => readStatus === "paused";

/**
 * Resolves when a stream accepts more data; await it after `send` returned false. The library's
 * `onDrain` only works the first time: afterwards it resolves immediately, however full the stream
 * is.
 *
 * @throws the error that ended the stream; the reason of the signal
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
