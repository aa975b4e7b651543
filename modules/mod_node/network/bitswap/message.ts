/** Bitswap messages and their bytes: the protocol buffers of all its versions. */

import { FieldReader, fieldLength } from "../../formats/protobuf/fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { NodeError } from "../../util/errors.ts";

/** Bytes of a message at most, as all implementations have it. */
export const MAX_MESSAGE_SIZE = 4 * 1024 * 1024;

/** Newest first. */
export const protocols = [
  "/ipfs/bitswap/1.2.0",
  "/ipfs/bitswap/1.1.0",
  "/ipfs/bitswap/1.0.0",
  "/ipfs/bitswap",
] as const;

/** What a version of the protocol can say. */
export interface Version {
  /** want-have, don't-have and the answers to them: since 1.2. */
  readonly presences: boolean;
  /** Blocks come with the prefix of their CID: since 1.1. */
  readonly prefixes: boolean;
}

export const versionOf = (protocol: string): Version => ({
  presences: protocol === protocols[0],
  prefixes: protocol === protocols[0] || protocol === protocols[1],
});

/** One line of a wantlist. */
export interface WantlistEntry {
  /** Bytes of the CID. */
  readonly cid: Uint8Array;
  /** Higher is sooner. */
  readonly priority: number;
  /** It is wanted no longer. */
  readonly cancel: boolean;
  /** Not the block is wanted, only whether it is there. */
  readonly have: boolean;
  /** It is to be told, too, that the block is not there. */
  readonly sendDontHave: boolean;
}

export interface BlockPresence {
  /** Bytes of the CID. */
  readonly cid: Uint8Array;
  /** It is there, or is not. */
  readonly have: boolean;
}

/** A block as it travels. */
export interface WireBlock {
  /** Version, codec, hash function and length of the digest of its CID; undefined before version 1.1. */
  readonly prefix: Uint8Array | undefined;
  readonly data: Uint8Array;
}

export interface Message {
  /** These are all wants that there are: earlier ones are void. */
  readonly full: boolean;
  readonly entries: readonly WantlistEntry[];
  readonly blocks: readonly WireBlock[];
  readonly presences: readonly BlockPresence[];
  /** Bytes of blocks that wait to be sent behind these. */
  readonly pendingBytes: number;
}

/** Of each list in a message. Wants beyond it are left out and counted, anything else makes the message a bad one. */
const MAX_LISTED = 16 * 1024;

/** A message that was read: its parts are views of its bytes. */
export interface DecodedMessage extends Message {
  /** Wants that were left out. */
  readonly droppedEntries: number;
}

const empty: Uint8Array = new Uint8Array();

/** @throws NodeError when the bytes are no message */
export function decodeMessage(bytes: Uint8Array): DecodedMessage {
  const entries: WantlistEntry[] = [];
  const blocks: WireBlock[] = [];
  const presences: BlockPresence[] = [];
  const list = { full: false, droppedEntries: 0, pendingBytes: 0 };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) parseWantlist(reader.bytes, entries, list);
    else if (reader.field === 2) blocks.push({ prefix: undefined, data: reader.bytes });
    else if (reader.field === 3) blocks.push(parseParcel(reader.bytes));
    else if (reader.field === 4) presences.push(parsePresence(reader.bytes));
    else if (reader.field === 5) list.pendingBytes = reader.number;
    if (blocks.length > MAX_LISTED || presences.length > MAX_LISTED) throw new NodeError("a message of too many parts");
  }
  return { ...list, entries, blocks, presences };
}

function parseWantlist(
  bytes: Uint8Array,
  entries: WantlistEntry[],
  list: { full: boolean; droppedEntries: number },
): void {
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 2) list.full = reader.number !== 0;
    else if (reader.field !== 1) continue;
    else if (entries.length < MAX_LISTED) entries.push(parseEntry(reader.bytes));
    else list.droppedEntries += 1;
  }
}

function parseEntry(bytes: Uint8Array): WantlistEntry {
  const entry = { cid: empty, priority: 0, cancel: false, have: false, sendDontHave: false };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) entry.cid = reader.bytes;
    else if (reader.field === 2) entry.priority = reader.number | 0;
    else if (reader.field === 3) entry.cancel = reader.number !== 0;
    else if (reader.field === 4) entry.have = reader.number === 1;
    else if (reader.field === 5) entry.sendDontHave = reader.number !== 0;
  }
  return entry;
}

function parseParcel(bytes: Uint8Array): WireBlock {
  const parcel = { prefix: empty, data: empty };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) parcel.prefix = reader.bytes;
    else if (reader.field === 2) parcel.data = reader.bytes;
  }
  return parcel;
}

function parsePresence(bytes: Uint8Array): BlockPresence {
  const presence = { cid: empty, have: true };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === 1) presence.cid = reader.bytes;
    else if (reader.field === 2) presence.have = reader.number === 0;
  }
  return presence;
}

/** Blocks from this length on are not copied into the message: it points to them. */
const MIN_SPLICED_SIZE = 16 * 1024;

const entryLength = ({ cid, priority, cancel, have, sendDontHave }: WantlistEntry): number =>
  fieldLength(cid.length) +
  (priority > 0 ? 1 + varintLength(priority) : 0) +
  (cancel ? 2 : 0) +
  (have ? 2 : 0) +
  (sendDontHave ? 2 : 0);

const parcelLength = ({ prefix, data }: WireBlock): number =>
  fieldLength(prefix?.length ?? 0) + fieldLength(data.length);

const presenceLength = ({ cid, have }: BlockPresence): number => fieldLength(cid.length) + (have ? 0 : 2);

/** Bytes of a block that a message can carry, at most. */
export const MAX_BLOCK_SIZE = MAX_MESSAGE_SIZE - 1024;

/**
 * A message behind its length, as it goes over a stream: in pieces, of which the long blocks are those that were given.
 * Presences and the fields of wants that a version does not know must not be in it.
 */
export function encodeMessage({ full, entries, blocks, presences, pendingBytes }: Message): Uint8Array[] {
  const listed = entries.map(entryLength);
  const wantlist = sum(listed.map(fieldLength)) + (full ? 2 : 0);
  const packed = blocks.map(parcelLength);
  const told = presences.map(presenceLength);
  // Field 1 stands there even when it is empty: the first implementations ask for it.
  const length =
    fieldLength(wantlist) +
    sum(
      blocks.map(({ prefix, data }, at) => fieldLength(prefix === undefined ? data.length : (packed[at] as number))),
    ) +
    sum(told.map(fieldLength)) +
    (pendingBytes > 0 ? 1 + varintLength(pendingBytes) : 0);
  let apart = 0;
  for (const { data } of blocks) if (data.length >= MIN_SPLICED_SIZE) apart += data.length;

  const pieces: Uint8Array[] = [];
  const head = Buffer.allocUnsafeSlow(varintLength(length) + length - apart);
  let from = 0;
  let at = writeVarint(head, 0, length);
  const tag = (field: number, wire: number, value: number) => {
    head[at] = field * 8 + wire;
    at = writeVarint(head, at + 1, value);
  };
  const bytes = (field: number, value: Uint8Array) => {
    tag(field, 2, value.length);
    head.set(value, at);
    at += value.length;
  };
  const long = (field: number, value: Uint8Array) => {
    if (value.length < MIN_SPLICED_SIZE) return bytes(field, value);
    tag(field, 2, value.length);
    pieces.push(head.subarray(from, at), value);
    from = at;
  };

  tag(1, 2, wantlist);
  for (const [index, { cid, priority, cancel, have, sendDontHave }] of entries.entries()) {
    tag(1, 2, listed[index] as number);
    bytes(1, cid);
    if (priority > 0) tag(2, 0, priority);
    if (cancel) tag(3, 0, 1);
    if (have) tag(4, 0, 1);
    if (sendDontHave) tag(5, 0, 1);
  }
  if (full) tag(2, 0, 1);
  for (const [index, { prefix, data }] of blocks.entries()) {
    if (prefix === undefined) {
      long(2, data);
      continue;
    }
    tag(3, 2, packed[index] as number);
    bytes(1, prefix);
    long(2, data);
  }
  for (const [index, { cid, have }] of presences.entries()) {
    tag(4, 2, told[index] as number);
    bytes(1, cid);
    if (!have) tag(2, 0, 1);
  }
  if (pendingBytes > 0) tag(5, 0, pendingBytes);
  if (from < at) pieces.push(head.subarray(from, at));
  return pieces;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
