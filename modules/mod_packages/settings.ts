/** The settings that every operation of this module takes. */

export interface PackageSettings {
  /** Path of `modules.lock`. */
  readonly lockFile: string;
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
  /** Checks and describes permissions. */
  readonly permissions: PermissionRules;
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

export interface PermissionRules {
  /** Returns why a declaration is wrong; undefined for a correct one. */
  fault(declared: unknown): string | undefined;
  /** Returns one text for each permission: "may connect to api.example.org:443". */
  words(declared: unknown): readonly string[];
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
