/** Changes of keys, as the logs and tables of Pebble store them. */
import { DatabaseDamaged } from "../lsm/fields.ts";

/** Kinds of changes (Pebble's `internal/base`). */
export const kinds = {
  delete: 0,
  set: 1,
  logData: 3,
  singleDelete: 7,
  rangeDelete: 15,
  setWithDelete: 18,
  deleteSized: 23,
} as const;

/** Flag in tables: a later change in the same table replaces this one. */
const OBSOLETE = 64;

export interface Entry {
  readonly key: Buffer;
  /** The change of a key with the largest number counts. */
  readonly sequence: number;
  /** Undefined if the key was removed. */
  readonly value: Buffer | undefined;
}

/** Removes the keys from `start` to before `end` that earlier changes have set. */
export interface Tombstone {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly sequence: number;
}

/** Kinds of changes that remove a key. */
const removalKinds: ReadonlySet<number> = new Set([kinds.delete, kinds.singleDelete, kinds.deleteSized]);
/** Kinds of changes that set a key. */
const setKinds: ReadonlySet<number> = new Set([kinds.set, kinds.setWithDelete]);

/** Sorts by key; for one key, the latest change comes first. */
export const compareEntries = (one: Entry, other: Entry): number =>
  Buffer.compare(one.key, other.key) || other.sequence - one.sequence;

export interface Trailer {
  readonly sequence: number;
  readonly kind: number;
}

/**
 * Parses the 8 bytes after a key in a table: the lowest byte is the kind, the others are the number
 * of the change.
 */
export function trailerOf(trailer: bigint): Trailer {
  return { sequence: Number(trailer >> 8n), kind: Number(trailer & 0xffn) & ~OBSOLETE };
}

/**
 * Creates an entry.
 * @throws DatabaseDamaged for kinds that Kubo does not write
 */
export function entryOf(key: Buffer, { sequence, kind }: Trailer, value: Buffer): Entry {
  if (setKinds.has(kind)) return { key, sequence, value };
  if (removalKinds.has(kind)) return { key, sequence, value: undefined };
  throw new DatabaseDamaged(`it has changes of the kind ${kind}, which Kubo does not write`);
}
