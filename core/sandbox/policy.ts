/** The types that describe a sandbox: its rights, its program and its layers. */
import type { CgroupLimits } from "./cgroup.ts";

/** The rights that the kernel leaves to the process. Paths are absolute and real. */
export interface SandboxPolicy {
  /** Files and folders that may be read. The launcher adds those that Node itself reads. */
  readonly read: readonly string[];
  /** Folders below which files may be read, created, changed and removed, and never executed. */
  readonly write: readonly string[];
  /** Programs that may be executed. If there are none, no child process can be started. */
  readonly run: readonly string[];
  readonly addons: boolean;
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether namespaces are used where they work, are required, or are not used. */
  readonly namespaces: "auto" | "required" | "off";
  /** `own`: a user of its own where the server runs as root. */
  readonly user: "own" | "same";
  readonly rlimits?: SandboxLimits;
  /** Limits for all processes of the sandbox together, where the server can divide its cgroup. */
  readonly cgroup?: CgroupLimits;
}

/** Limits that the kernel enforces, in bytes, seconds and numbers. */
export interface SandboxLimits {
  readonly addressSpace?: number;
  /** Memory that is writable and not shared, reserved or used. */
  readonly data?: number;
  readonly openFiles?: number;
  /** Threads and processes of the user. Without an own user, those of the server count as well. */
  readonly processes?: number;
  readonly cpuSeconds?: number;
  readonly fileSize?: number;
}

export interface SandboxLaunch {
  /** Name of the module. Its own user is derived from it. */
  readonly name: string;
  /** File of the program. It must be below a path that may be read. */
  readonly program: string;
  readonly args: readonly string[];
  /** Path of the Unix socket at which the process listens, as descriptor 4. */
  readonly listen: string;
  /**
   * Path of a second Unix socket, as descriptor 5, for connections that the host opens for the
   * module.
   */
  readonly listenForConnections?: string;
  /**
   * A file with compiled code of the program, opened for reading, as descriptor 6. Without it that
   * descriptor is /dev/null.
   */
  readonly compiled?: number;
  readonly policy: SandboxPolicy;
  /** Options of Node.js for the process, such as the size of its heap. */
  readonly nodeOptions?: readonly string[];
  /** Weakens the sandbox. Only tests set it, to try each layer by itself. */
  readonly testing?: {
    /** The highest Landlock ABI to use. */
    readonly landlockAbi?: number;
    /** Whether Node's own permissions are left out: the program can then make any system call. */
    readonly native?: boolean;
  };
}

/** One layer of the sandbox on this machine. */
export interface SandboxLayer {
  readonly name: string;
  readonly works: boolean;
  /** A sentence about what it does here, or why it does not work. */
  readonly detail: string;
  /** How to get it. */
  readonly remedy?: string;
  /** Whether no module is sandboxed without it. */
  readonly isRequired: boolean;
}
