/**
 * Announces many blocks to one peer over one stream, with messages `ADD_PROVIDER` of the
 * specification. These messages have no response.
 */
import type { Stream } from "@libp2p/interface";
import { drained } from "../swarm/stream_backpressure.ts";
import { encodeAddProvider, encodeProvider, type Provider } from "./add_provider.ts";

/** Number of bytes that are passed to the stream at a time. */
const CHUNK_SIZE = 16 * 1024;

/**
 * Sends a message for each multihash, and closes the stream. `progress` is called before each wait
 * and returns the signal that aborts this wait.
 *
 * @returns the number of sent messages, which is smaller if the peer ends the stream
 */
export async function sendProviderRecords(
  stream: Stream,
  provider: Provider,
  multihashes: readonly Uint8Array[],
  progress: () => AbortSignal,
): Promise<number> {
  let sent = 0;
  try {
    for (const { bytes, count } of chunks(encodeProvider(provider), multihashes)) {
      if (!stream.send(bytes)) await drained(stream, progress());
      sent += count;
    }
    await stream.close({ signal: progress() });
  } catch (error) {
    stream.abort(error as Error);
    // Buffered messages may be lost.
    return 0;
  }
  return sent;
}

function* chunks(provider: Uint8Array, multihashes: readonly Uint8Array[]) {
  let messages: Uint8Array[] = [];
  let size = 0;
  for (const multihash of multihashes) {
    const message = encodeAddProvider(provider, multihash);
    messages.push(message);
    size += message.length;
    if (size < CHUNK_SIZE) continue;
    yield { bytes: Buffer.concat(messages), count: messages.length };
    messages = [];
    size = 0;
  }
  if (messages.length > 0) yield { bytes: Buffer.concat(messages), count: messages.length };
}
