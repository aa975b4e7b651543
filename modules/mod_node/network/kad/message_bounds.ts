/** Bounds of DHT messages, which are put on them before the library decodes them: it takes what comes, in one piece. */
import { requireFewFields } from "../../formats/protobuf/count_fields.ts";
import { FieldReader, tagOf, wireBytes, writeField } from "../../formats/protobuf/fields.ts";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";

/** Bytes of one message. go-ipfs takes four times as many, and sends far fewer. */
export const MAX_MESSAGE_SIZE = 2 ** 20;
/** Fields of one message, those of its peers counted: some thousands of peers with their addresses. */
const MAX_FIELDS = 65_536;
/** Bytes of all addresses in one message; an honest one takes about ten. */
const MAX_ADDRESSES_SIZE = 160 * 1024;

const CLOSER_FIELD = 8;
const PROVIDERS_FIELD = 9;
const ADDRESS_FIELD = 2;
/** `Message` of the specification of the DHT: a record, and two lists of peers. */
const message = { 3: {}, [CLOSER_FIELD]: {}, [PROVIDERS_FIELD]: {} };

/** Peers of each list that are read; an honest message names twenty that are close. */
const peersRead: Readonly<Record<number, number>> = { [CLOSER_FIELD]: 20, [PROVIDERS_FIELD]: 256 };
/** Addresses of each peer that are read. */
const MAX_ADDRESSES = 128;

/**
 * The message with no more peers, and addresses of each, than are read.
 *
 * @throws NodeError for a message beyond the bounds, and for malformed bytes
 */
export function boundedMessage(bytes: Uint8Array): Uint8Array {
  requireFewFields(bytes, message, MAX_FIELDS);
  let size = 0;
  const peers: Record<number, number> = { [CLOSER_FIELD]: 0, [PROVIDERS_FIELD]: 0 };
  return rewritten(bytes, (field, peer) => {
    const most = peersRead[field];
    if (most === undefined) return "kept";
    size += addressesSize(peer);
    if (size > MAX_ADDRESSES_SIZE)
      throw new NodeError(`addresses of more than ${MAX_ADDRESSES_SIZE} bytes in one message`);
    const count = (peers[field] = (peers[field] as number) + 1);
    return count <= most ? withFewAddresses(peer) : "dropped";
  });
}

function withFewAddresses(peer: Uint8Array): Uint8Array {
  let count = 0;
  return rewritten(peer, (field) => (field === ADDRESS_FIELD && ++count > MAX_ADDRESSES ? "dropped" : "kept"));
}

/** A message whose fields are kept, dropped, or have another content, which is no longer. */
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
 * Bounds the messages on a stream: the function takes what comes, and gives it back as it may be read. @throws NodeError like `boundedMessage`
 *
 * @param take gets all that one read completed, and gives what is to be read of it
 */
export function boundsOfStream(
  take: (messages: readonly Uint8Array[]) => readonly Uint8Array[] = (messages) => messages,
): (data: Uint8Array | Iterable<Uint8Array>) => Uint8Array[] {
  const frames = new FrameReader(MAX_MESSAGE_SIZE, { take: (length) => new Uint8Array(length) });
  return (data) => take([...frames.read(data)]).map((message) => framed(boundedMessage(message)));
}

function framed(message: Uint8Array): Uint8Array {
  const into = new Uint8Array(varintLength(message.length) + message.length);
  into.set(message, writeVarint(into, 0, message.length));
  return into;
}
