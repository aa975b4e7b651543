/** What `modhost doctor` looks at, and what it finds. */
import type { Config } from "../../config/index.ts";
import type { ServerStatus } from "../../types.ts";

/** Something that is wrong, or will be, and what to do about it. */
export interface Finding {
  /** `problem`: something does not work; `warning`: it will not, or is not safe. */
  readonly level: "problem" | "warning";
  readonly text: string;
  readonly remedy: string;
}

/** What checks go by. */
export interface Installation {
  /** What `modhost check` says of the configuration. */
  readonly report: {
    readonly config: string | undefined;
    readonly problems: readonly string[];
    readonly warnings: readonly string[];
  };
  /** With what modules declare; undefined where it cannot be read. */
  readonly config: Config | undefined;
  /** Where a server keeps its data. */
  readonly data: string;
  /** The socket of its Admin API. */
  readonly socket: string;
  /** The server that runs on the configuration; undefined without one. */
  readonly running: ServerStatus | undefined;
  /** Why a server that seems to run is not reached. */
  readonly unreached: string | undefined;
  readonly system: System;
}

/** The machine, as a test may have another one. */
export interface System {
  readonly uid: number | undefined;
  readonly node: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** A small file of the system; undefined where there is none. */
  read(path: string): string | undefined;
  /** Of the file system that a path is on; undefined where that is not known. */
  space(
    path: string,
  ): { readonly type: number; readonly free: number; readonly files: number; readonly freeFiles: number } | undefined;
}

/** One check; all of them stand in tables, from which the command and its help come. */
export interface Check {
  /** One or two words. */
  readonly name: string;
  /** What it looks at, in a line. */
  readonly help: string;
  /** Nothing for what is in order. What it throws is a finding, too. */
  run(installation: Installation): readonly Finding[] | Promise<readonly Finding[]>;
}

export const problem = (text: string, remedy: string): Finding => ({ level: "problem", text, remedy });
export const warning = (text: string, remedy: string): Finding => ({ level: "warning", text, remedy });

/** Why what is taken may be the server that runs on this configuration itself, and the remedy; "" where it would be found. */
export function unfoundServer(config: Config | undefined): string {
  const enabled = config?.value("modules_enabled");
  if (!Array.isArray(enabled) || enabled.includes("http_admin")) return "";
  return "; where it is the server of this configuration, which no command finds: add http_admin to modules_enabled";
}
