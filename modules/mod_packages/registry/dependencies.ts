/** Computes which versions of which packages a module needs, and where in the tree they belong. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isTable, textsIn, type UnpackedManifest } from "../archive/read_manifest.ts";
import { PackageError } from "../errors.ts";
import type { PackageSettings } from "../settings.ts";
import { arborist, parseSpec, semver, type TreeNode } from "./libraries.ts";
import { oldEnough } from "./look_up.ts";
import { codeOf, type Registries } from "./registries.ts";

const SECOND = 1000;
const tables = ["dependencies", "optionalDependencies", "peerDependencies"] as const;
const fromRegistry: ReadonlySet<string> = new Set(["version", "range", "tag", "alias"]);

/** A package that a module needs. */
export interface NeededPackage {
  /** Its path below the module's own package: "node_modules/x". */
  readonly location: string;
  readonly name: string;
  readonly version: string;
}

/**
 * Returns the packages that a module needs, its own excluded. npm's library computes them from an
 * empty folder with only the module's dependencies. `modhost` is not among them.
 * @param folder an empty folder
 */
export async function dependenciesOf(
  manifest: UnpackedManifest,
  folder: string,
  registries: Registries,
  settings: PackageSettings,
): Promise<NeededPackage[]> {
  const wanted = wantedBy(manifest);
  if (tables.every((table) => Object.keys(wanted[table]).length === 0)) return [];
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify(wanted));
  const tree = new (arborist())({
    ...registries.options,
    ...refusals,
    path: folder,
    engineStrict: true,
    packageLock: false,
    before: settings.minimumReleaseAge === 0 ? null : new Date(settings.now() - settings.minimumReleaseAge * SECOND),
    minReleaseAgeExclude: settings.exceptions.releaseAge.map(withoutVersion),
  });
  const { inventory } = await tree.buildIdealTree().catch(async (error: unknown) => {
    throw await treeError(error, manifest, registries, settings);
  });
  return [...inventory.values()].filter(isNeeded).map(({ location, packageName: name, version }) => {
    return { location, name, version };
  });
}

/** Settings of npm's library: everything comes from a registry, and no code of a package is run. */
const refusals = {
  allowDirectory: "none",
  allowFile: "none",
  allowGit: "none",
  allowRemote: "none",
  allowRegistry: "all",
  force: false,
  global: false,
  ignoreExtension: true,
  ignoreScripts: true,
  installStrategy: "hoisted",
  legacyPeerDeps: false,
  omit: ["dev"],
  include: [],
  workspaces: [],
};

const isNeeded = ({ isRoot, isLink, inert, packageName }: TreeNode): boolean =>
  !isRoot && !isLink && !inert && packageName !== "modhost";

/**
 * Returns a package.json with the dependencies alone. Packages that are in the archive of the
 * module are left out.
 */
function wantedBy(manifest: UnpackedManifest) {
  const bundled = manifest.bundleDependencies ?? manifest.bundledDependencies;
  const isBundled = (name: string) => bundled === true || (Array.isArray(bundled) && bundled.includes(name));
  const optional = textsIn(manifest, "optionalDependencies");
  const table = (field: (typeof tables)[number]) => {
    const entries = Object.entries(textsIn(manifest, field));
    return Object.fromEntries(
      entries.filter(([name, spec]) => {
        if (isBundled(name)) return false;
        const isOptional = field === "optionalDependencies" || Object.hasOwn(optional, name);
        assertFromRegistry(name, spec, manifest.name, isOptional);
        return true;
      }),
    );
  };
  return {
    name: "module",
    version: "0.0.0",
    dependencies: table("dependencies"),
    optionalDependencies: table("optionalDependencies"),
    peerDependencies: table("peerDependencies"),
    peerDependenciesMeta: isTable(manifest.peerDependenciesMeta) ? manifest.peerDependenciesMeta : {},
  };
}

function assertFromRegistry(name: string, spec: string, module: string, isOptional: boolean): void {
  const dependency = `${name}@${spec}`;
  let isRight: boolean;
  try {
    isRight = fromRegistry.has(parseSpec(dependency).type);
  } catch {
    isRight = false;
  }
  if (!isRight && !isOptional) throw new PackageError("DEPENDENCY_REFUSED", { package: module, dependency });
}

const withoutVersion = (pattern: string): string => pattern.replace(/(?<=.)@[^/]*$/, "");

/** Returns an error of this module for one of npm's library. */
async function treeError(
  error: unknown,
  { name, version }: UnpackedManifest,
  registries: Registries,
  settings: PackageSettings,
): Promise<unknown> {
  const { message, ...facts } = error as Error & TreeFailure;
  const dependency = facts.name === undefined ? facts.pkgid : `${facts.name}@${facts.wanted ?? "*"}`;
  switch (codeOf(error)) {
    case "EALLOWGIT":
    case "EALLOWREMOTE":
    case "EALLOWFILE":
    case "EALLOWDIRECTORY":
      return new PackageError("DEPENDENCY_REFUSED", { package: `A dependency of ${name}`, dependency: facts.package });
    case "EBADENGINE":
      return engineError(facts, settings);
    case "EBADPLATFORM":
      return new PackageError("PLATFORM_OTHER", { package: facts.pkgid ?? name, version: "", reason: message });
    case "ETARGET":
    case "ENOVERSIONS": {
      if (facts.name === "modhost") {
        return new PackageError("HOST_OTHER", { package: name, version, range: facts.wanted, host: settings.host });
      }
      if (facts.name === undefined) break;
      // The newest match may be too young, which has an error of its own.
      const young = await oldEnough(facts.name, facts.wanted ?? "", registries, settings).catch((why: unknown) => why);
      if (young instanceof PackageError) return young;
      break;
    }
    case "E404": {
      const reason = "its registry has no such package";
      return new PackageError("DEPENDENCY_NOT_FOUND", { package: name, dependency: facts.pkgid, reason });
    }
    default:
      return registries.fetchError(error, name);
  }
  return new PackageError("DEPENDENCY_NOT_FOUND", { package: name, dependency, reason: message });
}

interface TreeFailure {
  readonly name?: string;
  readonly wanted?: string;
  readonly package?: string;
  readonly pkgid?: string;
  readonly required?: { readonly node?: string };
}

function engineError({ pkgid = "", required }: TreeFailure, { node }: PackageSettings): PackageError {
  const at = pkgid.lastIndexOf("@");
  return new PackageError("NODE_OTHER", {
    package: pkgid.slice(0, at),
    version: pkgid.slice(at + 1),
    range: required?.node,
    node: semver().clean(node) ?? node,
  });
}
