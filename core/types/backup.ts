/** What a module adds to backups of the host: what `module.provides("backup", ...)` takes. */

/**
 * The data of a module, for backups. What a module keeps in files of `data_path()` is part of every backup without this:
 * copied file by file, as they are read. Only data that is written as a whole of several files, or that is elsewhere, needs it.
 */
export interface BackupItem {
  /**
   * Called when a backup begins. What it gives is the data as it is at one moment, and stays so until `release`, while
   * the module goes on. It rejects when that cannot be: the backup fails then.
   */
  hold(signal: AbortSignal): Promise<HeldData>;
}

/** The data of a module at one moment. */
export interface HeldData {
  /**
   * Absolute paths of the folders that it is in, by names such as `repo`. A restore puts a folder that is below
   * `data_path` there again; another one becomes `<module>_<name>` beside the data.
   */
  readonly folders: Readonly<Record<string, string>>;
  /** All that the backup has of these folders. */
  readonly files: Iterable<BackupFile> | AsyncIterable<BackupFile>;
  /** Of all files together, where that is known: for the progress. */
  readonly bytes?: number;
  /** Sentences that whoever restores it must read. */
  readonly notes?: readonly string[];
  /** Called once, when the backup is over or has failed. */
  release(): unknown;
}

/** A file of a backup. */
export interface BackupFile {
  /** The name of one of the folders. */
  readonly folder: string;
  /** Below it, with slashes. One that ends in a slash is a folder, which may be empty. */
  readonly path: string;
  /** Its permissions; default 0o600, of a folder 0o700. */
  readonly mode?: number;
  /** Where it is the same as in the backup before, so is the content, which is not read then: size, time of change, inode. */
  readonly state?: string;
  /** The file only grows: with the same `growing`, what the backup before has of it is the beginning of what there is now. */
  readonly growing?: string;
  /** Lines of text that come and go: what remains of them is not stored again. */
  readonly is_lines?: boolean;
  /** Its bytes from this offset on; never called for a folder. */
  read(from: number): AsyncIterable<Uint8Array>;
}
