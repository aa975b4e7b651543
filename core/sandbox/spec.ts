/** The messages between the host and the launcher, as JSON. */
import type { FileRule } from "./kernel/landlock.ts";
import type { SandboxLimits } from "./policy.ts";

export interface LauncherSpec {
  /** Path of the Unix socket to make. The probe makes none. */
  readonly listen?: string;
  /** Path of the second Unix socket to make. */
  readonly listenForConnections?: string;
  readonly node: string;
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly rules: readonly FileRule[];
  /** File that must be readable at the end, for a clear error. */
  readonly program?: string;
  readonly run: boolean;
  readonly limits: SandboxLimits;
  /** Whether `CONNECTIONS` is the file by which it enters its cgroup, until it makes the socket. */
  readonly hasCgroup?: boolean;
  readonly user?: number;
  /** Id of the process that starts the launcher; absent if the launcher cannot see it. */
  readonly parent?: number;
  /** Whether the processes of the host are out of sight. */
  readonly isInNamespace: boolean;
  readonly landlockAbi?: number;
}

/** The result of a launcher that is started without a program, to find out which steps work. */
export interface ProbeReport {
  readonly landlockAbi: number;
  /** The step that failed, and why. */
  readonly failed?: { readonly step: string; readonly reason: string };
}

/** Exit code of a launcher that could not start the program. The reason is on stderr. */
export const NOT_STARTED = 113;

/**
 * Descriptors of the new process: its channel to the host, its listening sockets, and the compiled
 * code of its program.
 */
export const CHANNEL = 3;
export const LISTENER = 4;
export const CONNECTIONS = 5;
export const COMPILED = 6;
