/**
 * Describes a fetched module to an operator before consent, and compares it with an installed one.
 */
import { permissionWords } from "../../core/index.ts";
import type { DeclaredOption } from "./archive/check_module.ts";
import { dependenciesIn, type FetchedModule, type FetchedVersion } from "./fetch/fetch_module.ts";
import type { VerifiedFact } from "./lockfile/format.ts";
import { semver } from "./registry/libraries.ts";
import type { PackageSettings } from "./settings.ts";
import { packagePath } from "./store/package_store.ts";
import { periodText, shown } from "./text.ts";

const SECOND = 1000;

/** All texts of packages are printable. */
export interface ModuleDescription {
  readonly module: string;
  readonly package: string;
  readonly version: string;
  readonly publisher?: string;
  readonly published?: string;
  /** Time since then: "12 days". */
  readonly age?: string;
  /** URL of the archive, or `file:` and a path. */
  readonly resolved: string;
  readonly verified: readonly VerifiedFact[];
  /** The repository that it was built from, by its provenance. */
  readonly repository?: string;
  readonly files: number;
  readonly bytes: number;
  readonly license: string;
  readonly dependencies: number;
  /** Numbers of dependencies by licence. */
  readonly licenses: Readonly<Record<string, number>>;
  /** The declared permissions in words: "may connect to api.example.org:443". */
  readonly permissions: readonly string[];
  readonly options: readonly DeclaredOption[];
  readonly host?: string;
  readonly node?: string;
  readonly warnings: readonly string[];
}

export function describeModule(
  { module, version: fetched, facts, files, bytes, warnings }: FetchedModule,
  settings: Pick<PackageSettings, "now">,
): ModuleDescription {
  const { package: name, version, publisher, published, repository, packages, verified, permissions } = fetched;
  const dependencies = dependenciesIn(fetched);
  const licenses: Record<string, number> = {};
  for (const [, { license = "none stated" }] of dependencies)
    licenses[shown(license)] = (licenses[shown(license)] ?? 0) + 1;
  return {
    module,
    package: name,
    version,
    ...(publisher !== undefined && { publisher: shown(publisher) }),
    ...(published !== undefined && { published, age: periodText((settings.now() - Date.parse(published)) / SECOND) }),
    resolved: shown(packages[packagePath(name)]?.resolved ?? ""),
    verified,
    ...(repository !== undefined && { repository: shown(repository) }),
    files,
    bytes,
    license: shown(facts.license),
    dependencies: dependencies.length,
    licenses,
    permissions: permissionWords(permissions).map(shown),
    options: facts.options.map(({ name: option, type, describe, ...others }) => {
      return { ...others, name: shown(option), type: shown(type), describe: shown(describe) };
    }),
    ...(facts.host !== undefined && { host: shown(facts.host) }),
    ...(facts.node !== undefined && { node: shown(facts.node) }),
    warnings: warnings.map(shown),
  };
}

/** A difference between two versions of a module. */
export interface VersionChange {
  readonly kind:
    | "version"
    | "permission"
    | "publisher"
    | "repository"
    | "verification"
    | "source"
    | "license"
    | "dependency";
  /** A sentence without a full stop. */
  readonly text: string;
  /** Whether the operator has to consent to it, although the module was installed before. */
  readonly needs_consent: boolean;
}

/** Compares an installed version with a fetched one. The changes that need consent come first. */
export function changesBetween(installed: FetchedVersion, fetched: FetchedVersion): VersionChange[] {
  const changes: VersionChange[] = [];
  const add = (kind: VersionChange["kind"], needs_consent: boolean, text: string) =>
    changes.push({ kind, text: shown(text), needs_consent });
  const isLower = semver().lt(fetched.version, installed.version);
  if (isLower) add("version", true, `Lower version: ${installed.version} becomes ${fetched.version}`);
  const before = permissionWords(installed.permissions);
  const after = permissionWords(fetched.permissions);
  for (const words of without(after, before)) add("permission", true, `New permission: ${words}`);
  for (const words of without(before, after)) add("permission", false, `Permission dropped: ${words}`);
  for (const kind of ["publisher", "repository"] as const) {
    const from = installed[kind];
    const to = fetched[kind];
    if (from !== to) add(kind, true, `Other ${kind}: ${from ?? "unknown"} becomes ${to ?? "unknown"}`);
  }
  for (const fact of without(installed.verified, fetched.verified))
    add("verification", true, `No ${fact} any longer: that of ${installed.version} was verified`);
  if (installed.source !== fetched.source)
    add(
      "source",
      originOf(installed) !== originOf(fetched),
      `Other source: ${installed.source} becomes ${fetched.source}`,
    );
  const license = ownLicense(installed);
  const newLicense = ownLicense(fetched);
  if (license !== newLicense) add("license", true, `Other licence: ${license} becomes ${newLicense}`);
  const had = dependencyNames(installed);
  const has = dependencyNames(fetched);
  for (const name of without(has, had)) add("dependency", true, `New dependency: ${name}`);
  for (const name of without(had, has)) add("dependency", false, `Dependency dropped: ${name}`);
  return changes.sort((one, other) => Number(other.needs_consent) - Number(one.needs_consent));
}

/** The registry's host; or the path of a file or a folder. A range may change without consent. */
function originOf({ source, packages, package: name }: FetchedVersion): string {
  if (source.startsWith("file:")) return source;
  return URL.parse(packages[packagePath(name)]?.resolved ?? "")?.host ?? "";
}

const without = <T>(all: readonly T[], some: readonly T[]): T[] => all.filter((each) => !some.includes(each));

const ownLicense = ({ packages, package: name }: FetchedVersion) =>
  packages[packagePath(name)]?.license ?? "none stated";

function dependencyNames(version: FetchedVersion): string[] {
  const names = dependenciesIn(version).map(
    ([location, { name }]) => name ?? location.slice(location.lastIndexOf("node_modules/") + "node_modules/".length),
  );
  return [...new Set(names)].sort();
}
