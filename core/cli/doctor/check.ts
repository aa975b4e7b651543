/** The types of checks and findings of `modhost doctor`. */
import { statSync } from "node:fs";
import { bundled } from "../../../config/bundled.ts";
import type { Config } from "../../config/index.ts";
import type { SandboxLayer } from "../../sandbox/index.ts";
import type { ServerStatus } from "../../types.ts";

/** A current or future problem, with its remedy. */
export interface Finding {
  /** `problem`: something does not work. `warning`: it will stop working, or is not safe. */
  readonly level: "problem" | "warning";
  readonly text: string;
  readonly remedy: string;
}

/** The installation that checks inspect. */
export interface Installation {
  /** The report of `modhost check` on the configuration. */
  readonly report: {
    readonly config: string | undefined;
    readonly problems: readonly string[];
    readonly warnings: readonly string[];
  };
  /** The configuration with the options of all modules; undefined if it cannot be read. */
  readonly config: Config | undefined;
  /** The data folder of the server. */
  readonly data: string;
  /** The socket of its Admin API. */
  readonly socket: string;
  /** The server that runs on the configuration; undefined if none runs. */
  readonly running: ServerStatus | undefined;
  /** Why a server that seems to run cannot be reached. */
  readonly unreached: string | undefined;
  /** The layers of the sandbox on this machine. */
  readonly layers: readonly SandboxLayer[];
  readonly system: System;
}

/** The machine; tests replace it. */
export interface System {
  readonly uid: number | undefined;
  readonly node: string;
  /** Returns the milliseconds since 1970. */
  now(): number;
  /** Returns the content of a small system file; undefined if it does not exist. */
  read(path: string): string | undefined;
  /** Returns the space of the file system that contains a path; undefined if that is not known. */
  space(
    path: string,
  ): { readonly type: number; readonly free: number; readonly files: number; readonly freeFiles: number } | undefined;
}

/** One check. The command and its help are generated from tables of checks. */
export interface Check {
  /** One or two words. */
  readonly name: string;
  /** A description in one line. */
  readonly help: string;
  /** Returns an empty list if everything is in order. A thrown error becomes a finding. */
  run(installation: Installation): readonly Finding[] | Promise<readonly Finding[]>;
}

export const problem = (text: string, remedy: string): Finding => ({ level: "problem", text, remedy });
export const warning = (text: string, remedy: string): Finding => ({ level: "warning", text, remedy });

/**
 * Returns a warning if users outside of the file's group may use a file. Returns nothing for a
 * value that is not a path, or a path that does not exist.
 */
export function openToOthers(path: unknown, what = ""): Finding[] {
  const mode = typeof path === "string" ? statSync(path, { throwIfNoEntry: false })?.mode : undefined;
  if (mode === undefined || (mode & 0o007) === 0) return [];
  return [warning(`Other users may use ${what}${path}`, `chmod o= ${path}`)];
}

/**
 * Returns a hint that a running server of this configuration may use the resource, with the remedy;
 * "" if commands would find such a server.
 */
export function unfoundServer(config: Config | undefined): string {
  const enabled = config?.value("modules_enabled");
  if (!Array.isArray(enabled) || enabled.includes(bundled.control)) return "";
  return `. If that program is the server of this configuration, add ${bundled.control} to modules_enabled: no command finds the server without it`;
}
