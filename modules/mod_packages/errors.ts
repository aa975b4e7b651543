/** Every error of this module: one table of code and message. */
import { reasonOf } from "../../core/index.ts";
import { shown } from "./text.ts";

/** `{name}` is replaced by the detail of that name. */
const messages = {
  // Sources
  SOURCE_UNKNOWN:
    "{source} is no source of a module: name a package such as modhost-mod-shop@^1, a tarball such as ./shop-1.0.0.tgz, or a folder such as ./shop",
  SOURCE_REFUSED:
    "{source} is {kind}, which modhost does not install: publish it to a registry, or fetch it and name the folder or the tarball",
  SOURCE_MISSING: "{source} does not exist: check the path",
  SOURCE_CHANGED: "{source} has changed since {package} {version} was installed: add it again",
  // Registries
  PACKAGE_NOT_FOUND: "The registry {registry} has no package {names}: check the spelling, or the registry in .npmrc",
  VERSION_NOT_FOUND: "{package} has no version that matches {wanted}: its latest one is {latest}",
  VERSION_REMOVED:
    "{package} {version} has been removed from the registry {registry}: choose another version. An installed copy keeps working",
  VERSION_DEPRECATED:
    "{package} {version} is deprecated: {reason}. Choose another version, or list {package}@{version} in packages_allow_deprecated",
  VERSION_TOO_YOUNG:
    "{package} {version} was published {age} ago, and packages_minimum_release_age is {minimum}: wait until {until}, choose an older version, or list {package} in packages_release_age_exceptions",
  RELEASE_AGE_UNKNOWN:
    "The registry {registry} does not say when {package} {version} was published, so its release age is unknown: list {package} in packages_release_age_exceptions to install it all the same",
  VERSION_LOWER:
    "{package} {version} is lower than the installed version {installed}: consent to the downgrade to install it",
  VERSION_REPUBLISHED:
    "The registry now has other contents for {package} {version} than those that were installed: the registry or the package may be compromised. Choose another version",
  REGISTRY_REFUSED: "The registry {registry} refuses {package} ({reason}): check its token in .npmrc",
  REGISTRY_UNREACHABLE: "The registry {registry} cannot be reached for {package}: {reason}",
  REGISTRY_OTHER:
    "{package} {version} would come from {host}, but its registry is {registry}: set the registry of its scope in .npmrc",
  // Verification
  INTEGRITY:
    "The contents of {package} {version} do not match the checksum of {by}: try again, or choose another version",
  INTEGRITY_WEAK: "The registry has no SHA-512 checksum for {package} {version}: choose another version",
  SIGNATURE_MISSING:
    "{package} {version} has no signature, although the registry {registry} signs its packages: choose another version",
  SIGNATURE_INVALID: "The signature of {package} {version} is wrong: choose another version, or another registry",
  SIGNATURE_KEY_UNKNOWN:
    "{package} {version} is signed with a key that the registry {registry} does not list: choose another version, or another registry",
  SIGNATURE_KEY_EXPIRED:
    "{package} {version} is signed with a key that had expired when it was published: choose another version, or another registry",
  PROVENANCE_INVALID:
    "The provenance of {package} {version} cannot be verified ({reason}): choose another version, or set packages_verify_provenance to false",
  // Archives
  ARCHIVE_INVALID: "The archive of {package} cannot be read ({reason}): choose another version",
  ARCHIVE_LINK:
    "The archive of {package} contains the link {path}: packages may contain files only. Choose another version",
  ARCHIVE_SPECIAL:
    "The archive of {package} contains {path}, which is neither a file nor a folder ({type}): choose another version",
  ARCHIVE_PATH: "The archive of {package} contains the path {path}, {reason}: choose another version",
  ARCHIVE_COLLISION:
    "The archive of {package} contains both {path} and {other}, which are one file on some file systems: choose another version",
  ARCHIVE_FILES:
    "{package} has more than {most} files with its dependencies, which is the limit: choose another version",
  ARCHIVE_SIZE: "{package} has more than {most} with its dependencies, which is the limit: choose another version",
  ARCHIVE_RATIO:
    "The archive of {package} grows to more than {most} times its size when it is unpacked, which is the limit: choose another version",
  // Packages
  MANIFEST_INVALID: "The package.json of {package} is not valid: {reason}",
  MANIFEST_OTHER: "The archive of {package} {version} contains {found}: choose another version, or another registry",
  SCRIPTS:
    "{package} {version} has the install script {script}, which modhost never runs: choose another version, or list {package} in packages_allow_scripts to install it without running the script",
  DEPENDENCY_REFUSED:
    "{package} needs {dependency}, which does not come from a registry: choose a version without that dependency",
  DEPENDENCY_NOT_FOUND: "{package} needs {dependency}, which cannot be installed: {reason}",
  NO_MODULE: "{package} {version} is no module of modhost: {reason}",
  HOST_OTHER: "{package} {version} requires modhost {range}, and this is {host}: choose a version of it that matches",
  NODE_OTHER:
    "{package} {version} requires Node.js {range}, and this is {node}: choose a version of it that matches, or update Node.js",
  PLATFORM_OTHER: "{package} {version} does not run on this machine ({reason}): choose another version",
  ENTRY_INVALID: "{package} {version} names the entry {entry}, {reason}: choose another version",
  // The lock file and the store
  LOCK_INVALID: "{file} is not valid: {problem}",
  LOCK_NEWER: "{file} was written by a later version of modhost (format {format}): update this one",
  MODULE_UNKNOWN: "{module} is not installed from a package: {file} has no entry for it",
  NAME_TAKEN: "{package} would be the module {module}, which is already installed from {other}: remove that one first",
  NAME_RESERVED: "{package} would be the module {module}, which comes with modhost: choose another package",
  NO_PREVIOUS: "{module} has no previous version to return to",
  TREE_MISSING: "The files of {module} {version} are missing in {path}: install it again",
  TREE_OTHER: "The files of {module} are not those that modules.lock states: add the module again to accept them",
  STORE_BUSY: "{path} is being changed by process {pid} of {machine}: wait until it ends",
  FAILED: "{package} cannot be installed: {reason}",
} as const;

export type PackageErrorCode = keyof typeof messages;

/** An error with a stable code; `details` has the values that the message names. */
export class PackageError extends Error {
  readonly code: PackageErrorCode;
  readonly details: Readonly<Record<string, string>>;

  constructor(code: PackageErrorCode, details: Readonly<Record<string, unknown>>, options?: ErrorOptions) {
    const texts = Object.fromEntries(Object.entries(details).map(([name, value]) => [name, shown(String(value))]));
    super(
      messages[code].replace(/\{(\w+)\}/g, (field, name: string) => texts[name] ?? field),
      options,
    );
    this.name = "PackageError";
    this.code = code;
    this.details = texts;
  }
}

/**
 * Returns what an operation rejects with: an error of this module, in which nothing is secret.
 * `package` names the package that was worked on.
 */
export function packageError(error: unknown, name: string, mask: (text: string) => string): PackageError {
  if (!(error instanceof PackageError))
    return new PackageError("FAILED", { package: name, reason: mask(reasonOf(error)) });
  const details = Object.fromEntries(Object.entries(error.details).map(([field, text]) => [field, mask(text)]));
  return new PackageError(error.code, details);
}
