/** Encodes messages without copying long blocks. */
import { fieldLength, wireBytes, wireVarint } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import {
  type BlockPresence,
  ENTRY,
  MESSAGE,
  type Message,
  PAYLOAD,
  PRESENCE,
  PRESENCE_DONT_HAVE,
  WANT_TYPE_HAVE,
  WANTLIST,
  type WantlistEntry,
  type WireBlock,
} from "./message.ts";

/**
 * Minimum size of a block that is not copied, but becomes a piece of the encoded message itself.
 */
const MIN_SPLICED_SIZE = 16 * 1024;

/** Bytes of a field with a small number: tag and value. */
const FLAG_LENGTH = 2;

const entryLength = ({ cid, priority, cancel, have, sendDontHave }: WantlistEntry): number =>
  fieldLength(cid.length) +
  (priority > 0 ? 1 + varintLength(priority) : 0) +
  (cancel ? FLAG_LENGTH : 0) +
  (have ? FLAG_LENGTH : 0) +
  (sendDontHave ? FLAG_LENGTH : 0);

const payloadLength = ({ prefix, data }: WireBlock): number =>
  fieldLength(prefix?.length ?? 0) + fieldLength(data.length);

const presenceLength = ({ cid, have }: BlockPresence): number => fieldLength(cid.length) + (have ? 0 : FLAG_LENGTH);

/**
 * Writes fields into a buffer of known length. Long values are not copied: they become pieces
 * between parts of the buffer.
 */
class PieceWriter {
  readonly pieces: Uint8Array[] = [];
  readonly #buffer: Uint8Array;
  #from = 0;
  #at: number;

  /**
   * Starts a message of `length` bytes with its length prefix; `spliced` of these bytes will not be
   * copied.
   */
  constructor(length: number, spliced: number) {
    this.#buffer = Buffer.allocUnsafeSlow(varintLength(length) + length - spliced);
    this.#at = writeVarint(this.#buffer, 0, length);
  }

  /** Writes the tag of a field, followed by its value or by the length of its bytes. */
  tag(field: number, wire: number, value: number): void {
    this.#buffer[this.#at] = field * 8 + wire;
    this.#at = writeVarint(this.#buffer, this.#at + 1, value);
  }

  bytes(field: number, value: Uint8Array): void {
    this.tag(field, wireBytes, value.length);
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  /** Like `bytes`, but does not copy long values. */
  block(field: number, value: Uint8Array): void {
    if (value.length < MIN_SPLICED_SIZE) {
      this.bytes(field, value);
      return;
    }
    this.tag(field, wireBytes, value.length);
    this.pieces.push(this.#buffer.subarray(this.#from, this.#at), value);
    this.#from = this.#at;
  }

  end(): Uint8Array[] {
    if (this.#from < this.#at) this.pieces.push(this.#buffer.subarray(this.#from, this.#at));
    return this.pieces;
  }
}

/**
 * Encodes a message with its length prefix into pieces; long blocks are passed through as pieces.
 * The message must only use features that the protocol version of its stream knows.
 */
export function encodeMessage({ full, entries, blocks, presences, pendingBytes }: Message): Uint8Array[] {
  const entryLengths = entries.map(entryLength);
  const wantlistLength = sum(entryLengths.map(fieldLength)) + (full ? FLAG_LENGTH : 0);
  const payloadLengths = blocks.map(payloadLength);
  const presenceLengths = presences.map(presenceLength);
  // An empty wantlist is written as well, because the first implementations require it.
  const length =
    fieldLength(wantlistLength) +
    sum(
      blocks.map(({ prefix, data }, at) =>
        fieldLength(prefix === undefined ? data.length : lengthAt(payloadLengths, at)),
      ),
    ) +
    sum(presenceLengths.map(fieldLength)) +
    (pendingBytes > 0 ? 1 + varintLength(pendingBytes) : 0);
  let spliced = 0;
  for (const { data } of blocks) if (data.length >= MIN_SPLICED_SIZE) spliced += data.length;

  const writer = new PieceWriter(length, spliced);
  writer.tag(MESSAGE.wantlist, wireBytes, wantlistLength);
  for (const [at, entry] of entries.entries()) writeEntry(writer, entry, lengthAt(entryLengths, at));
  if (full) writer.tag(WANTLIST.full, wireVarint, 1);
  for (const [at, { prefix, data }] of blocks.entries()) {
    if (prefix === undefined) {
      writer.block(MESSAGE.blocks, data);
      continue;
    }
    writer.tag(MESSAGE.payload, wireBytes, lengthAt(payloadLengths, at));
    writer.bytes(PAYLOAD.prefix, prefix);
    writer.block(PAYLOAD.data, data);
  }
  for (const [at, { cid, have }] of presences.entries()) {
    writer.tag(MESSAGE.blockPresences, wireBytes, lengthAt(presenceLengths, at));
    writer.bytes(PRESENCE.cid, cid);
    if (!have) writer.tag(PRESENCE.type, wireVarint, PRESENCE_DONT_HAVE);
  }
  if (pendingBytes > 0) writer.tag(MESSAGE.pendingBytes, wireVarint, pendingBytes);
  return writer.end();
}

function writeEntry(writer: PieceWriter, entry: WantlistEntry, length: number): void {
  const { cid, priority, cancel, have, sendDontHave } = entry;
  writer.tag(WANTLIST.entries, wireBytes, length);
  writer.bytes(ENTRY.block, cid);
  if (priority > 0) writer.tag(ENTRY.priority, wireVarint, priority);
  if (cancel) writer.tag(ENTRY.cancel, wireVarint, 1);
  if (have) writer.tag(ENTRY.wantType, wireVarint, WANT_TYPE_HAVE);
  if (sendDontHave) writer.tag(ENTRY.sendDontHave, wireVarint, 1);
}

const lengthAt = (numbers: readonly number[], at: number): number => numbers[at] as number;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
