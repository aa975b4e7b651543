/**
 * What a repository holds, by the names of its objects:
 *
 * - `repository.json`: that it is one, and how it is encrypted. Written once.
 * - `objects/ab/abcd…`: pieces of files, alone or some small ones behind each other, by the hash of the content. Never
 *   changed.
 * - `snapshots/ID`: a backup that is whole; written when all that it refers to is durable.
 * - `lock`: who writes now.
 */

export const headName = "repository.json";
export const snapshotPrefix = "snapshots/";
export const objectPrefix = "objects/";
export const objectName = (hash: string): string => `${objectPrefix}${hash.slice(0, 2)}/${hash}`;

/** The only kind of repository there is so far. */
export const FORMAT = 1;

export interface Head {
  readonly kind: "modhost backup";
  readonly format: number;
  readonly encryption?: Encryption;
}

export interface Encryption {
  readonly kdf: "scrypt";
  readonly N: number;
  readonly r: number;
  readonly p: number;
  /** Base64, as `check`. */
  readonly salt: string;
  /** A known text, encrypted: whether a key is the right one. */
  readonly check: string;
}

/** A part of a file: hash and length; and where it is, when not alone in the object of its hash: object, offset. */
export type Piece = readonly [hash: string, length: number, object?: string, at?: number];

/** A file of a snapshot, or a folder, whose path ends in a slash. */
export interface Entry {
  /** The name of one of the snapshot's folders. */
  readonly folder: string;
  /** Below it. */
  readonly path: string;
  readonly mode: number;
  readonly size: number;
  /** See `BackupFile.state`. */
  readonly state?: string;
  /** See `BackupFile.growing`. */
  readonly growing?: string;
  readonly pieces: readonly Piece[];
}

/** Files that stood in one folder. */
export interface SnapshotFolder {
  readonly name: string;
  /** Where it stood. */
  readonly was: string;
  /** Where a restore puts it, below the folder that it makes; empty for that folder itself. */
  readonly to: string;
  /** The option that says where it is, where the restored configuration does not lead there by itself. */
  readonly option?: string;
}

export interface SnapshotFacts {
  /** ISO 8601. */
  readonly time: string;
  /** Of the program. */
  readonly version: string;
  /** Name of the machine. */
  readonly machine: string;
  /** The config file, below the restored folder; undefined when the host had none. */
  readonly config?: string;
  readonly folders: readonly SnapshotFolder[];
  /** What whoever restores it must know. */
  readonly notes: readonly string[];
}

export interface Snapshot extends SnapshotFacts {
  readonly format: number;
  readonly files: number;
  /** Of all files. */
  readonly bytes: number;
  /** That this backup had to write. */
  readonly added: number;
  /** The entries, a line of JSON each. */
  readonly list: readonly Piece[];
}

/** A snapshot with its name, which sorts by time. */
export interface Named extends Snapshot {
  readonly id: string;
}

/** True for a path that does not stay below the folder that it is in. */
export function leadsOut(path: string): boolean {
  const parts = path.split("/");
  return path !== "" && (parts.includes("..") || parts.includes("") || path.includes("\0"));
}
