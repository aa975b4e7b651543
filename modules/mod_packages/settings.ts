/** The settings that every operation of this module takes. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { packageVersion } from "../../core/index.ts";
import type { options } from "./options.ts";

export interface PackageSettings {
  /** Path of `modules.lock`. */
  readonly lockFile: string;
  /**
   * Replaces the text of the lock file; default: writes the file. It rejects if nothing changed.
   */
  readonly saveLock?: (text: string) => Promise<void>;
  /** Folder of the installed packages. */
  readonly store: string;
  /** Folder of the config file: relative sources start from it, and it may contain `.npmrc`. */
  readonly folder: string;
  /** The environment, which can set npm's options by `npm_config_NAME`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Minimum age of a version, in seconds. */
  readonly minimumReleaseAge: number;
  readonly verifyProvenance: boolean;
  readonly exceptions: PackageExceptions;
  readonly limits: ArchiveLimits;
  /** Names that no installed module may have. */
  readonly reserved: readonly string[];
  /** Versions of modhost and of Node.js. */
  readonly host: string;
  readonly node: string;
  /** Returns the time in milliseconds since 1970. */
  readonly now: () => number;
}

/** Packages for which a check is skipped: `name`, `name@version`, or `@scope/*`. */
export interface PackageExceptions {
  readonly releaseAge: readonly string[];
  /** Packages that may have install scripts, which are not run. */
  readonly scripts: readonly string[];
  readonly deprecated: readonly string[];
}

/** Limits for a module together with its dependencies. */
export interface ArchiveLimits {
  readonly files: number;
  readonly bytes: number;
  /** Maximum number of unpacked bytes per byte of an archive. */
  readonly ratio: number;
}

/** Names of the modules that come with modhost, whose folders are next to this one. */
const bundledNames = () =>
  readdirSync(new URL("../", import.meta.url)).flatMap((name) => (name.startsWith("mod_") ? [name.slice(4)] : []));

/** Returns the settings of a host. `read` returns the value of an option of this module. */
export function settingsOf(
  { folder, dataPath }: { readonly folder: string; readonly dataPath: string },
  read: (option: keyof typeof options) => unknown,
): PackageSettings {
  const list = (option: keyof typeof options) => read(option) as readonly string[];
  return {
    lockFile: join(folder, "modules.lock"),
    store: join(dataPath, "packages"),
    folder,
    env: process.env,
    minimumReleaseAge: Number(read("packages_minimum_release_age")),
    verifyProvenance: read("packages_verify_provenance") === true,
    exceptions: {
      releaseAge: list("packages_release_age_exceptions"),
      scripts: list("packages_allow_scripts"),
      deprecated: list("packages_allow_deprecated"),
    },
    limits: defaultLimits,
    reserved: bundledNames(),
    host: packageVersion(),
    node: process.version,
    now: Date.now,
  };
}

export const defaultLimits: ArchiveLimits = { files: 10_000, bytes: 200 * 1024 * 1024, ratio: 200 };

/** Whether a list of exceptions names a package. */
export function isExcepted(patterns: readonly string[], name: string, version: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === name ||
      pattern === `${name}@${version}` ||
      (pattern.endsWith("/*") && name.startsWith(pattern.slice(0, -1))),
  );
}
