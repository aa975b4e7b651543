/** The format of `modules.lock`, and its strict reader. */
import { isAbsolute } from "node:path";
import { permissionFault, reasonOf } from "../../../core/index.ts";
import type { ModulePermissions, ModuleRun } from "../../../core/types.ts";
import { isTable } from "../archive/read_manifest.ts";
import { PackageError } from "../errors.ts";

export const FORMAT = 1;

/** A fact about a package that was verified. */
export type VerifiedFact = "integrity" | "signature" | "provenance";

/** A package of a tree, by its path in the tree: `node_modules/x`. */
export interface LockedPackage {
  readonly version: string;
  /** Its name, where that is not the end of its path. */
  readonly name?: string;
  /** URL of the archive; `file:` and a path for a module that did not come from a registry. */
  readonly resolved: string;
  /** SHA-512 of the archive, as npm writes it. */
  readonly integrity: string;
  readonly license?: string;
}

/** An installed version of a module. */
export interface InstalledVersion {
  /** The requested source: `npm:modhost-mod-shop@^1.2.0`, or `file:` and a relative path. */
  readonly source: string;
  readonly package: string;
  readonly version: string;
  readonly integrity: string;
  /** The hash of the list of files. */
  readonly tree: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
  readonly publisher?: string;
  /** When this version was published, ISO 8601. */
  readonly published?: string;
  /** The repository that it was built from, by its provenance. */
  readonly repository?: string;
  readonly verified: readonly VerifiedFact[];
  /** The permissions that the package declares. */
  readonly permissions: ModulePermissions;
  /** The permissions that the operator consented to. */
  readonly grant: ModulePermissions;
  readonly run: ModuleRun;
  /** When it was installed, ISO 8601. */
  readonly installed: string;
}

export interface LockedModule extends InstalledVersion {
  /** The version that was installed before, for a rollback. */
  readonly previous?: InstalledVersion;
}

export type LockedModules = Readonly<Record<string, LockedModule>>;

/** Names of modules and packages become paths, so that they are checked strictly. */
export const moduleName = /^[A-Za-z0-9][\w.-]*$/;
export const packageName = /^(?:@[a-z0-9~-][\w.~-]*\/)?[A-Za-z0-9~][\w.~-]*$/;
const packageLocation = /^(?:(?:^|\/)node_modules\/(?:@[A-Za-z0-9~-][\w.~-]*\/)?[A-Za-z0-9~][\w.~-]*)+$/;
const hash = /^[0-9a-f]{64}$/;
const integrity = /^sha512-[A-Za-z0-9+/]{86}==$/;
const facts: readonly string[] = ["integrity", "signature", "provenance"];
const runs: readonly string[] = ["trusted", "isolated", "sandboxed"];

/** Returns why a value is wrong, as the end of the sentence "x is y, but it must be ...". */
type FieldCheck = (value: unknown) => string | undefined;
interface FieldRule {
  readonly check: FieldCheck;
  readonly isOptional?: true;
}

const must =
  (test: (value: unknown) => boolean, expected: string): FieldCheck =>
  (value) =>
    test(value) ? undefined : expected;
const text = must((value) => typeof value === "string" && value !== "", "a text");
const matching = (pattern: RegExp, expected: string) =>
  must((value) => typeof value === "string" && pattern.test(value), expected);
const oneOf = (values: readonly string[]) =>
  must((value) => values.includes(value as string), `one of ${values.join(", ")}`);
const time = must(
  (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value)),
  "a time such as 2026-01-31T12:00:00.000Z",
);
const optional = (check: FieldCheck): FieldRule => ({ check, isOptional: true });

const packageRules: Readonly<Record<string, FieldRule>> = {
  version: { check: text },
  name: optional(matching(packageName, "the name of a package")),
  resolved: {
    check: must(
      (value) => typeof value === "string" && /^(?:https?:\/\/|file:)./.test(value),
      "a URL, or file: and a path",
    ),
  },
  integrity: { check: matching(integrity, "a checksum that begins with sha512-") },
  license: optional(text),
};

const permissionCheck: FieldCheck = (value) => {
  const fault = permissionFault(value);
  return fault && `permissions: ${fault}`;
};

const versionRules: Readonly<Record<string, FieldRule>> = {
  source: { check: matching(/^(?:npm|file):./, "npm: and a package, or file: and a path") },
  package: { check: matching(packageName, "the name of a package") },
  version: { check: text },
  integrity: { check: matching(integrity, "a checksum that begins with sha512-") },
  tree: { check: matching(hash, "a hash of 64 hexadecimal digits") },
  packages: { check: must((value) => isTable(value), "an object") },
  publisher: optional(text),
  published: optional(time),
  repository: optional(text),
  verified: {
    check: must(
      (value) => Array.isArray(value) && value.every((each) => facts.includes(each)),
      `a list of ${facts.join(", ")}`,
    ),
  },
  permissions: { check: permissionCheck },
  grant: { check: permissionCheck },
  run: { check: oneOf(runs) },
  installed: { check: time },
};

/** The order in which fields are written. */
export const versionFields = [
  "source",
  "package",
  "version",
  "integrity",
  "tree",
  "packages",
  "publisher",
  "published",
  "repository",
  "verified",
  "permissions",
  "grant",
  "run",
  "installed",
] as const satisfies readonly (keyof InstalledVersion)[];
export const packageFields = ["name", "version", "resolved", "integrity", "license"] as const;

/**
 * Parses the text of a lock file.
 * @throws {PackageError} LOCK_INVALID, which names the module and the field; LOCK_NEWER
 */
export function parseLockFile(content: string, file: string): LockedModules {
  const refuse = (problem: string) => new PackageError("LOCK_INVALID", { file, problem });
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    const hint = /^(?:<{7}|>{7})/m.test(content) ? ": resolve the conflicts of the merge" : "";
    throw refuse(`it is not JSON (${reasonOf(error)})${hint}`);
  }
  if (!isTable(value)) throw refuse("it must be an object");
  if (typeof value.version === "number" && value.version > FORMAT)
    throw new PackageError("LOCK_NEWER", { file, format: value.version });
  if (value.version !== FORMAT) throw refuse(`its version must be ${FORMAT}`);
  const [other] = Object.keys(value).filter((name) => name !== "version" && name !== "modules");
  if (other !== undefined) throw refuse(`it has the unknown field ${other}`);
  if (!isTable(value.modules)) throw refuse("its field modules must be an object");
  for (const [name, entry] of Object.entries(value.modules)) {
    if (!moduleName.test(name)) throw refuse(`${name} cannot be the name of a module`);
    const { previous, ...current } = isTable(entry) ? entry : { previous: undefined, entry };
    checkVersion(current, `modules.${name}`, versionRules, refuse);
    if (previous !== undefined) checkVersion(previous, `modules.${name}.previous`, versionRules, refuse);
  }
  return modulesOf(value.modules as unknown as LockedModules);
}

/** A table whose names are modules alone: a module may be called `constructor`. */
export const modulesOf = (entries: LockedModules): LockedModules => Object.assign(Object.create(null), entries);

type Refuse = (problem: string) => PackageError;

function checkVersion(entry: unknown, at: string, rules: Readonly<Record<string, FieldRule>>, refuse: Refuse): void {
  checkFields(entry, at, rules, refuse);
  const { packages, package: name } = entry as InstalledVersion;
  for (const [location, locked] of Object.entries(packages)) {
    if (!packageLocation.test(location) || isAbsolute(location))
      throw refuse(`${at}.packages has ${location}, which is not the path of a package`);
    checkFields(locked, `${at}.packages["${location}"]`, packageRules, refuse);
  }
  if (!Object.hasOwn(packages, `node_modules/${name}`))
    throw refuse(`${at}.packages lacks the package of the module, node_modules/${name}`);
}

function checkFields(value: unknown, at: string, rules: Readonly<Record<string, FieldRule>>, refuse: Refuse): void {
  if (!isTable(value)) throw refuse(`${at} must be an object`);
  for (const field of Object.keys(value))
    if (!Object.hasOwn(rules, field)) throw refuse(`${at} has the unknown field ${field}`);
  for (const [field, { check, isOptional }] of Object.entries(rules)) {
    if (!Object.hasOwn(value, field)) {
      if (!isOptional) throw refuse(`${at} lacks the field ${field}`);
      continue;
    }
    const expected = check(value[field]);
    if (expected !== undefined) throw refuse(`${at}.${field} is ${shortJson(value[field])}, but must be ${expected}`);
  }
}

const shortJson = (value: unknown): string => {
  const json = JSON.stringify(value);
  return json.length > 80 ? `${json.slice(0, 80)}...` : json;
};
