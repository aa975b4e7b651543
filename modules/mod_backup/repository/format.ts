/**
 * The objects of a repository, by name:
 * - `repository.json`: marks the repository and says how it is encrypted. It is written once.
 * - `objects/ab/abcd…`: one piece of a file, or several small ones, under the hash of the content.
 *   They never change.
 * - `snapshots/ID`: a complete backup. It is written when everything that it refers to is durable.
 * - `lock`: names the current writer.
 */

export const headName = "repository.json";
export const snapshotPrefix = "snapshots/";
export const objectPrefix = "objects/";
export const objectName = (hash: string): string => `${objectPrefix}${hash.slice(0, 2)}/${hash}`;

/** The only format so far. */
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
  /** Base64, like `check`. */
  readonly salt: string;
  /** A known text in encrypted form, which shows whether a key is correct. */
  readonly check: string;
}

/**
 * A part of a file: its hash and its length. If it shares an object with others, also the hash of
 * that object and the offset there.
 */
export type Piece = readonly [hash: string, length: number, object?: string, at?: number];

/** A file or folder of a snapshot. The path of a folder ends in a slash. */
export interface Entry {
  /** The name of one of the snapshot's folders. */
  readonly folder: string;
  /** The path below that folder. */
  readonly path: string;
  readonly mode: number;
  readonly size: number;
  /** See `BackupFile.state`. */
  readonly state?: string;
  /** See `BackupFile.growing`. */
  readonly growing?: string;
  readonly pieces: readonly Piece[];
}

/** A folder of the host whose files are in the snapshot. */
export interface SnapshotFolder {
  readonly name: string;
  /** The original path of the folder. */
  readonly was: string;
  /** The path below the restored folder; empty for the restored folder itself. */
  readonly to: string;
  /**
   * The option that names the folder. It is missing if the option is not set and the folder is
   * below the data folder or the config file's folder.
   */
  readonly option?: string;
}

export interface SnapshotFacts {
  /** ISO 8601. */
  readonly time: string;
  /** Version of the program. */
  readonly version: string;
  /** Name of the machine. */
  readonly machine: string;
  /** The config file, below the restored folder; undefined when the host had none. */
  readonly config?: string;
  readonly folders: readonly SnapshotFolder[];
  /** Notes for whoever restores the snapshot. */
  readonly notes: readonly string[];
}

export interface Snapshot extends SnapshotFacts {
  readonly format: number;
  readonly files: number;
  /** Total size of all files. */
  readonly bytes: number;
  /** Bytes that this backup had to write. */
  readonly added: number;
  /** The entries, as lines of JSON. */
  readonly list: readonly Piece[];
}

/** A snapshot with its id. Ids sort by time. */
export interface Named extends Snapshot {
  readonly id: string;
}

/** Returns whether a path leaves the folder that it is relative to. */
export function leadsOut(path: string): boolean {
  const parts = path.split("/");
  return path !== "" && (parts.includes("..") || parts.includes("") || path.includes("\0"));
}
