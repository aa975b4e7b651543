/** Additions of a module to backups of the host: the item of `module.provides("backup", ...)`. */

/**
 * The data of a module, for backups. Files that a module stores in `data_path()` are part of every
 * backup without this: they are copied one by one as they are read. Only data that spans several
 * files which must match, or that is stored elsewhere, needs an item.
 */
export interface BackupItem {
  /**
   * Called when a backup starts. Resolves to the data as it is at one moment, which must not change
   * until `release`, while the module keeps running. If that is not possible it rejects, and the
   * backup fails.
   */
  snapshot(signal: AbortSignal): Promise<BackupSnapshot>;
}

/** The data of a module at one moment. */
export interface BackupSnapshot {
  /**
   * Absolute paths of the folders that contain the data, by names such as `repo`. A restore puts a
   * folder below `data_path` back there; any other folder becomes `<module>_<name>` next to the
   * data.
   */
  readonly folders: Readonly<Record<string, string>>;
  /** Every file of these folders that belongs in the backup. */
  readonly files: Iterable<BackupFile> | AsyncIterable<BackupFile>;
  /** The size of all files together in bytes, if it is known: it is used to show progress. */
  readonly bytes?: number;
  /** Sentences that people must read before they restore the backup. */
  readonly notes?: readonly string[];
  /** Called once, when the backup is over or has failed. */
  release(): unknown;
}

/** A file of a backup. */
export interface BackupFile {
  /** The name of one of `folders`. */
  readonly folder: string;
  /**
   * The path below the folder, with slashes. A path that ends in a slash is a folder, which may be
   * empty.
   */
  readonly path: string;
  /** The permissions; default 0o600 for a file and 0o700 for a folder. */
  readonly mode?: number;
  /**
   * A fingerprint of the content, such as size, modification time and inode. If it is the same as
   * in the previous backup, the content counts as unchanged and is not read.
   */
  readonly state?: string;
  /**
   * An identifier for files that only grow: if the previous backup has the same `growing`, its
   * content is the beginning of the current content.
   */
  readonly growing?: string;
  /** True for a text that changes line by line: unchanged lines are not stored again. */
  readonly is_lines?: boolean;
  /** Reads the bytes from this offset on. It is never called for a folder. */
  read(from: number): AsyncIterable<Uint8Array>;
}
