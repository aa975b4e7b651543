/** Announces many blocks to one peer, over one stream: the messages `ADD_PROVIDER` of the specification, which nobody answers. */
import type { Stream } from "@libp2p/interface";
import type { PeerId } from "../../formats/peer_id.ts";
import { fieldLength, tagOf, wireBytes, wireVarint, writeField } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import { drained } from "../swarm/stream_backpressure.ts";

export interface Provider {
  readonly id: PeerId;
  readonly multiaddrs: readonly Multiaddr[];
}

const ADD_PROVIDER = 2;
/** Fields of `Message`, and of the peers in it. */
const [TYPE_FIELD, KEY_FIELD, PROVIDERS_FIELD] = [1, 2, 9];
const [ID_FIELD, ADDRESS_FIELD] = [1, 2];
/** Bytes that are handed to the stream at a time. */
const CHUNK_SIZE = 16 * 1024;

/**
 * Sends a message for each multihash, and closes the stream. What takes long in between is ended by `progress`, which is called for a
 * signal before each wait.
 *
 * @returns how many were sent; fewer than were given when the peer ends the stream
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
    // What waited in the buffers may be lost.
    return 0;
  }
  return sent;
}

/** The field with this node and its addresses: the same in each message. */
function encodeProvider({ id, multiaddrs }: Provider): Uint8Array {
  const parts = [
    [ID_FIELD, id.toMultihash().bytes] as const,
    ...multiaddrs.map((each) => [ADDRESS_FIELD, each.bytes] as const),
  ];
  const peer = new Uint8Array(parts.reduce((sum, [, { length }]) => sum + fieldLength(length), 0));
  let at = 0;
  for (const [field, bytes] of parts) at = writeField(peer, at, tagOf(field, wireBytes), bytes);
  const field = new Uint8Array(fieldLength(peer.length));
  writeField(field, 0, tagOf(PROVIDERS_FIELD, wireBytes), peer);
  return field;
}

/** A message with its length in front. */
function encodeAddProvider(provider: Uint8Array, multihash: Uint8Array): Uint8Array {
  const length = 2 + fieldLength(multihash.length) + provider.length;
  const bytes = new Uint8Array(varintLength(length) + length);
  let at = writeVarint(bytes, 0, length);
  bytes[at++] = tagOf(TYPE_FIELD, wireVarint);
  bytes[at++] = ADD_PROVIDER;
  at = writeField(bytes, at, tagOf(KEY_FIELD, wireBytes), multihash);
  bytes.set(provider, at);
  return bytes;
}

function* chunks(provider: Uint8Array, multihashes: readonly Uint8Array[]) {
  let [messages, size]: [Uint8Array[], number] = [[], 0];
  for (const multihash of multihashes) {
    const message = encodeAddProvider(provider, multihash);
    messages.push(message);
    size += message.length;
    if (size < CHUNK_SIZE) continue;
    yield { bytes: Buffer.concat(messages), count: messages.length };
    [messages, size] = [[], 0];
  }
  if (messages.length > 0) yield { bytes: Buffer.concat(messages), count: messages.length };
}
