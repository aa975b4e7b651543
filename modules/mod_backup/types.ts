/** Types of the backup results in the Admin API and the commands. */

export interface BackupProgress {
  readonly files: number;
  /** Size of the files so far, including unchanged files that were not read. */
  readonly bytes: number;
  /** Bytes that were written to the repository. */
  readonly added: number;
  /** Lower bound of the final value of `bytes`. */
  readonly total: number;
}

export interface BackupResult {
  /** Id of the snapshot. */
  readonly id: string;
  /** ISO 8601. */
  readonly time: string;
  readonly place: string;
  readonly files: number;
  readonly bytes: number;
  readonly added: number;
  readonly seconds: number;
  /** Ids of the removed snapshots. */
  readonly removed: readonly string[];
  readonly warnings: readonly string[];
}

/** A line of the response to a backup: its progress, and at the end its result. */
export type BackupLine =
  | { readonly progress: BackupProgress }
  | { readonly done: BackupResult }
  | { readonly failed: string };

export interface BackupState {
  /** The running backup. */
  readonly running?: { readonly by: string; readonly began: string; readonly progress: BackupProgress };
  /** The latest successful backup of this process. */
  readonly done?: BackupResult;
  /** The latest failed backup of this process, unless a later one has succeeded. */
  readonly failed?: { readonly time: string; readonly reason: string };
}

/** Parameters of a backup. Options of the configuration supply the rest. */
export interface BackupRequest {
  readonly to?: string | undefined;
  readonly key_file?: string | undefined;
  readonly keep?: number | undefined;
}

/** The exports of the module, as `module.depends("backup")` returns them. */
export interface BackupModule {
  /** Makes a backup; rejects when another one is running. */
  run(
    request: BackupRequest,
    options: {
      readonly by?: string;
      readonly signal: AbortSignal;
      readonly progress: (progress: BackupProgress) => void;
    },
  ): Promise<BackupResult>;
}
