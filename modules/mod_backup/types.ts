/** What the Admin API and the commands say of backups. */

export interface BackupProgress {
  readonly files: number;
  /** Of the files so far, whether they had to be read or not. */
  readonly bytes: number;
  /** That were written. */
  readonly added: number;
  /** That `bytes` will reach at least. */
  readonly total: number;
}

export interface BackupResult {
  /** Of the snapshot. */
  readonly id: string;
  /** ISO 8601. */
  readonly time: string;
  readonly place: string;
  readonly files: number;
  readonly bytes: number;
  readonly added: number;
  readonly seconds: number;
  /** Ids of the snapshots that went. */
  readonly removed: readonly string[];
  readonly warnings: readonly string[];
}

/** A line of the answer to a backup: how far it is, and at the end what came of it. */
export type BackupLine =
  | { readonly progress: BackupProgress }
  | { readonly done: BackupResult }
  | { readonly failed: string };

export interface BackupState {
  /** The one under way. */
  readonly running?: { readonly by: string; readonly began: string; readonly progress: BackupProgress };
  /** The latest of this process that has succeeded. */
  readonly done?: BackupResult;
  /** The latest of this process that has failed, unless a later one has succeeded. */
  readonly failed?: { readonly time: string; readonly reason: string };
}

/** What is asked for; the rest is of the options. */
export interface BackupRequest {
  readonly to?: string | undefined;
  readonly key_file?: string | undefined;
  readonly keep?: number | undefined;
}

/** What `module.depends("backup")` gives. */
export interface BackupModule {
  /** Makes a backup; rejects when there is one under way. */
  run(
    request: BackupRequest,
    options: {
      readonly by?: string;
      readonly signal: AbortSignal;
      readonly progress: (progress: BackupProgress) => void;
    },
  ): Promise<BackupResult>;
}
