/**
 * Limits DHT messages before the library decodes them, because the library accepts any message and
 * decodes it in one piece.
 */
import { requireFewFields } from "../../formats/protobuf/count_fields.ts";
import { FieldReader, tagOf, wireBytes, writeField } from "../../formats/protobuf/fields.ts";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { failure } from "../../util/errors.ts";

/**
 * Maximum size of one message in bytes. go-ipfs accepts four times as many, and sends far fewer.
 */
export const MAX_MESSAGE_SIZE = 2 ** 20;
/**
 * Maximum number of fields in one message, including those of its peers: enough for some thousand
 * peers with their addresses.
 */
const MAX_FIELDS = 65_536;
/**
 * Maximum number of bytes of all addresses in one message; an honest message needs about a
 * sixteenth of that.
 */
const MAX_ADDRESSES_SIZE = 160 * 1024;

const CLOSER_FIELD = 8;
const PROVIDERS_FIELD = 9;
const ADDRESS_FIELD = 2;
/** Nested fields of `Message` in the DHT specification: a record, and two lists of peers. */
const message = { 3: {}, [CLOSER_FIELD]: {}, [PROVIDERS_FIELD]: {} };

/**
 * Maximum number of peers that are read from each list; an honest message names twenty close peers.
 */
const peersRead: Readonly<Record<number, number>> = { [CLOSER_FIELD]: 20, [PROVIDERS_FIELD]: 256 };
/** Maximum number of addresses that are read per peer. */
const MAX_ADDRESSES = 128;

/**
 * Returns the message without the peers and addresses that exceed the limits.
 *
 * @throws NodeError for a message that exceeds the total limits, and for malformed bytes
 */
export function boundedMessage(bytes: Uint8Array): Uint8Array {
  requireFewFields(bytes, message, MAX_FIELDS);
  let size = 0;
  const peers: Record<number, number> = { [CLOSER_FIELD]: 0, [PROVIDERS_FIELD]: 0 };
  return rewritten(bytes, (field, peer) => {
    const maxPeers = peersRead[field];
    if (maxPeers === undefined) return "kept";
    size += addressesSize(peer);
    if (size > MAX_ADDRESSES_SIZE)
      throw failure("MESSAGE_INVALID", { reason: `addresses of more than ${MAX_ADDRESSES_SIZE} bytes in one message` });
    const count = (peers[field] = (peers[field] as number) + 1);
    return count <= maxPeers ? withFewAddresses(peer) : "dropped";
  });
}

function withFewAddresses(peer: Uint8Array): Uint8Array {
  let count = 0;
  return rewritten(peer, (field) => (field === ADDRESS_FIELD && ++count > MAX_ADDRESSES ? "dropped" : "kept"));
}

/**
 * Copies a message, and keeps, drops or replaces each of its fields. A replacement must not be
 * longer than the original.
 */
function rewritten(
  bytes: Uint8Array,
  judge: (field: number, content: Uint8Array) => Uint8Array | "kept" | "dropped",
): Uint8Array {
  const into = new Uint8Array(bytes.length);
  const reader = new FieldReader(bytes);
  let length = 0;
  for (let from = 0; reader.next(); from = reader.end) {
    const content = judge(reader.field, reader.bytes);
    if (content === "dropped") continue;
    if (content !== "kept") length = writeField(into, length, tagOf(reader.field, wireBytes), content);
    else for (let at = from; at < reader.end; at += 1) into[length++] = bytes[at] as number;
  }
  return into.subarray(0, length);
}

function addressesSize(peer: Uint8Array): number {
  let size = 0;
  const reader = new FieldReader(peer);
  while (reader.next()) if (reader.field === ADDRESS_FIELD) size += reader.bytes.length;
  return size;
}

/**
 * Returns a function that limits the messages on a stream: it receives the incoming bytes and
 * returns the bytes to read. It throws a NodeError like `boundedMessage`.
 *
 * @param select receives the messages that one read has completed, and returns those to read
 */
export function boundsOfStream(
  select: (messages: readonly Uint8Array[]) => readonly Uint8Array[] = (messages) => messages,
): (data: Uint8Array | Iterable<Uint8Array>) => Uint8Array[] {
  const frames = new FrameReader(MAX_MESSAGE_SIZE, { take: (length) => new Uint8Array(length) });
  return (data) => select([...frames.read(data)]).map((message) => framed(boundedMessage(message)));
}

function framed(message: Uint8Array): Uint8Array {
  const into = new Uint8Array(varintLength(message.length) + message.length);
  into.set(message, writeVarint(into, 0, message.length));
  return into;
}
