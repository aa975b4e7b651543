/** Bounds of DHT messages, which are looked at before the library decodes them: it takes what comes, in one piece. */
import { requireFewFields } from "../../formats/protobuf/count_fields.ts";
import { FieldReader } from "../../formats/protobuf/fields.ts";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { NodeError } from "../../util/errors.ts";

/** Bytes of one message. go-ipfs takes four times as many, and sends far fewer. */
export const MAX_MESSAGE_SIZE = 2 ** 20;
/** Fields of one message, those of its peers counted: some thousands of peers with their addresses. */
const MAX_FIELDS = 65_536;
/** Bytes of all addresses in one message; an honest one takes about ten. */
const MAX_ADDRESSES_SIZE = 160 * 1024;

const PEER_FIELDS = [8, 9];
const ADDRESS_FIELD = 2;
/** `Message` of the specification of the DHT: a record, and two lists of peers. */
const message = { 3: {}, 8: {}, 9: {} };

/** @throws NodeError for a message beyond the bounds, and for malformed bytes */
export function requireBounded(bytes: Uint8Array): void {
  requireFewFields(bytes, message, MAX_FIELDS);
  let size = 0;
  const reader = new FieldReader(bytes);
  while (reader.next()) if (PEER_FIELDS.includes(reader.field)) size += addressesSize(reader.bytes);
  if (size > MAX_ADDRESSES_SIZE) throw new NodeError(`addresses of ${size} bytes in one message`);
}

function addressesSize(peer: Uint8Array): number {
  let size = 0;
  const reader = new FieldReader(peer);
  while (reader.next()) if (reader.field === ADDRESS_FIELD) size += reader.bytes.length;
  return size;
}

/** Looks at the messages on a stream. The function takes what comes. @throws NodeError like `requireBounded` */
export function boundsOfStream(): (data: Uint8Array | Iterable<Uint8Array>) => void {
  const frames = new FrameReader(MAX_MESSAGE_SIZE, { take: (length) => new Uint8Array(length) });
  return (data) => {
    for (const frame of frames.read(data)) requireBounded(frame);
  };
}
