/** Decodes messages of the bitswap specification, versions 1.0 to 1.2. */
import { FieldReader } from "../../formats/protobuf/fields.ts";
import { failure } from "../../util/errors.ts";

/** Maximum size of a message that implementations accept, in bytes. */
export const MAX_MESSAGE_SIZE = 4 * 1024 * 1024;

/** Maximum size of a block that fits into a message, in bytes. */
export const MAX_BLOCK_SIZE = MAX_MESSAGE_SIZE - 1024;

/** The protocol names, newest version first. */
export const protocols = [
  "/ipfs/bitswap/1.2.0",
  "/ipfs/bitswap/1.1.0",
  "/ipfs/bitswap/1.0.0",
  "/ipfs/bitswap",
] as const;

/** Features of a version of the protocol. */
export interface Version {
  /** want-have, send-dont-have, and the responses HAVE and DONT_HAVE: since 1.2. */
  readonly presences: boolean;
  /** Blocks carry the prefix of their CID: since 1.1. */
  readonly prefixes: boolean;
}

export const versionOf = (protocol: string): Version => ({
  presences: protocol === protocols[0],
  prefixes: protocol === protocols[0] || protocol === protocols[1],
});

/** Field numbers of the specification's protobuf messages. */
export const MESSAGE = { wantlist: 1, blocks: 2, payload: 3, blockPresences: 4, pendingBytes: 5 } as const;
export const WANTLIST = { entries: 1, full: 2 } as const;
export const ENTRY = { block: 1, priority: 2, cancel: 3, wantType: 4, sendDontHave: 5 } as const;
export const PAYLOAD = { prefix: 1, data: 2 } as const;
export const PRESENCE = { cid: 1, type: 2 } as const;

/** Values of `WantType` and `BlockPresenceType`. */
export const WANT_TYPE_HAVE = 1;
const PRESENCE_HAVE = 0;
export const PRESENCE_DONT_HAVE = 1;

export interface WantlistEntry {
  /** Bytes of the CID. */
  readonly cid: Uint8Array;
  /** A higher value is sent sooner. */
  readonly priority: number;
  /** Whether the entry cancels the want. */
  readonly cancel: boolean;
  /** Whether the entry is a want-have instead of a want-block. */
  readonly have: boolean;
  /** Whether the sender wants DONT_HAVE as a response, too. */
  readonly sendDontHave: boolean;
}

/** A HAVE or DONT_HAVE for one block. */
export interface BlockPresence {
  /** Bytes of the CID. */
  readonly cid: Uint8Array;
  readonly have: boolean;
}

/** A block as it is sent. */
export interface WireBlock {
  /** Version, codec, hash function and digest length of its CID; undefined before version 1.1. */
  readonly prefix: Uint8Array | undefined;
  readonly data: Uint8Array;
}

export interface Message {
  /** Whether the entries are the whole wantlist and replace all earlier ones. */
  readonly full: boolean;
  readonly entries: readonly WantlistEntry[];
  readonly blocks: readonly WireBlock[];
  readonly presences: readonly BlockPresence[];
  /** Bytes of blocks that are queued behind this message. */
  readonly pendingBytes: number;
}

/**
 * Maximum length of each list in a message. Further wantlist entries are dropped and counted;
 * longer lists of other kinds make the message malformed.
 */
const MAX_LISTED = 16 * 1024;
/** Maximum number of fields of a message itself: the parts of all lists, and unknown fields. */
const MAX_FIELDS = 1024 * 1024;
/**
 * Maximum number of dropped wantlist entries; a message with more is malformed. So many entries
 * with their CIDs hardly fit into a message.
 */
const MAX_DROPPED = 8 * MAX_LISTED;

/** A received message; its parts are views of its bytes. */
export interface DecodedMessage extends Message {
  /** Number of dropped wantlist entries. */
  readonly droppedEntries: number;
}

const empty: Uint8Array = new Uint8Array();

/** @throws NodeError for an invalid message */
export function decodeMessage(bytes: Uint8Array): DecodedMessage {
  const entries: WantlistEntry[] = [];
  const blocks: WireBlock[] = [];
  const presences: BlockPresence[] = [];
  const list = { full: false, droppedEntries: 0, pendingBytes: 0 };
  const reader = new FieldReader(bytes);
  for (let fields = 0; reader.next(); fields += 1) {
    if (fields > MAX_FIELDS) throw failure("MESSAGE_INVALID", { reason: "a message of too many fields" });
    if (reader.field === MESSAGE.wantlist) decodeWantlist(reader.bytes, entries, list);
    else if (reader.field === MESSAGE.blocks) blocks.push({ prefix: undefined, data: reader.bytes });
    else if (reader.field === MESSAGE.payload) blocks.push(decodeBlock(reader.bytes));
    else if (reader.field === MESSAGE.blockPresences) presences.push(decodePresence(reader.bytes));
    else if (reader.field === MESSAGE.pendingBytes) list.pendingBytes = reader.number;
    if (blocks.length > MAX_LISTED || presences.length > MAX_LISTED)
      throw failure("MESSAGE_INVALID", { reason: "a message of too many parts" });
  }
  return { ...list, entries, blocks, presences };
}

function decodeWantlist(
  bytes: Uint8Array,
  entries: WantlistEntry[],
  list: { full: boolean; droppedEntries: number },
): void {
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === WANTLIST.full) list.full = reader.number !== 0;
    else if (reader.field !== WANTLIST.entries) continue;
    else if (entries.length < MAX_LISTED) entries.push(decodeEntry(reader.bytes));
    else {
      list.droppedEntries += 1;
      if (list.droppedEntries > MAX_DROPPED)
        throw failure("MESSAGE_INVALID", { reason: "a message of too many wants" });
    }
  }
}

function decodeEntry(bytes: Uint8Array): WantlistEntry {
  const entry = { cid: empty, priority: 0, cancel: false, have: false, sendDontHave: false };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === ENTRY.block) entry.cid = reader.bytes;
    else if (reader.field === ENTRY.priority) entry.priority = reader.number | 0;
    else if (reader.field === ENTRY.cancel) entry.cancel = reader.number !== 0;
    else if (reader.field === ENTRY.wantType) entry.have = reader.number === WANT_TYPE_HAVE;
    else if (reader.field === ENTRY.sendDontHave) entry.sendDontHave = reader.number !== 0;
  }
  return entry;
}

function decodeBlock(bytes: Uint8Array): WireBlock {
  const block = { prefix: empty, data: empty };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === PAYLOAD.prefix) block.prefix = reader.bytes;
    else if (reader.field === PAYLOAD.data) block.data = reader.bytes;
  }
  return block;
}

function decodePresence(bytes: Uint8Array): BlockPresence {
  const presence = { cid: empty, have: true };
  const reader = new FieldReader(bytes);
  while (reader.next()) {
    if (reader.field === PRESENCE.cid) presence.cid = reader.bytes;
    else if (reader.field === PRESENCE.type) presence.have = reader.number === PRESENCE_HAVE;
  }
  return presence;
}
