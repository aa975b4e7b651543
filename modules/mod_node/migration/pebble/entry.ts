/** Changes of keys, as logs and tables of a Pebble have them. */
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

/** Set in tables where a later change in the same table counts instead. */
const OBSOLETE = 64;

export interface Entry {
  readonly key: Buffer;
  /** Of two changes of a key, that of the larger number counts. */
  readonly sequence: number;
  /** Undefined: it was removed. */
  readonly value: Buffer | undefined;
}

/** Removes the keys from `start` to before `end` that were set by earlier changes. */
export interface Tombstone {
  readonly start: Buffer;
  readonly end: Buffer;
  readonly sequence: number;
}

/** Kinds of changes that remove a key. */
const removalKinds: ReadonlySet<number> = new Set([kinds.delete, kinds.singleDelete, kinds.deleteSized]);
/** Kinds of changes that give a key a value. */
const setKinds: ReadonlySet<number> = new Set([kinds.set, kinds.setWithDelete]);

/** By key; of one key, the latest change first. */
export const compareEntries = (one: Entry, other: Entry): number =>
  Buffer.compare(one.key, other.key) || other.sequence - one.sequence;

export interface Trailer {
  readonly sequence: number;
  readonly kind: number;
}

/**
 * The 8 bytes behind a key in a table: the kind in the lowest, the number of the change in the
 * others.
 */
export function trailerOf(trailer: bigint): Trailer {
  return { sequence: Number(trailer >> 8n), kind: Number(trailer & 0xffn) & ~OBSOLETE };
}

/** @throws DatabaseDamaged for kinds that Kubo does not write */
export function entryOf(key: Buffer, { sequence, kind }: Trailer, value: Buffer): Entry {
  if (setKinds.has(kind)) return { key, sequence, value };
  if (removalKinds.has(kind)) return { key, sequence, value: undefined };
  throw new DatabaseDamaged(`it has changes of the kind ${kind}, which Kubo does not write`);
}
