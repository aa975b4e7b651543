/** Checks that an unpacked package is a module that runs on this host. Its code is not run. */
import { stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { permissionFault } from "../../../core/index.ts";
import type { ModulePermissions } from "../../../core/types.ts";
import { PackageError } from "../errors.ts";
import { semver } from "../registry/libraries.ts";
import type { PackageSettings } from "../settings.ts";
import { isTable, textsIn, type UnpackedManifest } from "./read_manifest.ts";

/** An option that a package declares in its package.json. */
export interface DeclaredOption {
  readonly name: string;
  readonly type: string;
  readonly default?: unknown;
  readonly describe: string;
}

/** The facts about a module that its package.json states. */
export interface ModuleFacts {
  readonly permissions: ModulePermissions;
  readonly options: readonly DeclaredOption[];
  /** The supported versions of modhost and of Node.js. */
  readonly host?: string;
  readonly node?: string;
  readonly license: string;
}

/** @throws {PackageError} NO_MODULE, HOST_OTHER, NODE_OTHER, ENTRY_INVALID, MANIFEST_INVALID */
export async function checkModule(
  folder: string,
  manifest: UnpackedManifest,
  settings: Pick<PackageSettings, "host" | "node">,
): Promise<ModuleFacts> {
  const { name, version, modhost } = manifest;
  const refuse = (reason: string) => new PackageError("NO_MODULE", { package: name, version, reason });
  if (modhost === undefined) throw refuse("its package.json has no key modhost");
  if (!isTable(modhost)) throw refuse("the key modhost of its package.json must be an object");
  const { kind = "module", entry, host, permissions = {} } = modhost;
  if (kind !== "module") throw refuse(`it is a modhost ${kind}`);
  const { node } = textsIn(manifest, "engines");
  const { modhost: peer } = textsIn(manifest, "peerDependencies");
  for (const range of [host, peer]) {
    if (range === undefined) continue;
    if (typeof range !== "string" || !satisfies(settings.host, range))
      throw new PackageError("HOST_OTHER", { package: name, version, range, host: settings.host });
  }
  if (node !== undefined && !satisfies(settings.node, node))
    throw new PackageError("NODE_OTHER", { package: name, version, range: node, node: settings.node });
  const fault = permissionFault(permissions);
  if (fault !== undefined) throw new PackageError("MANIFEST_INVALID", { package: name, reason: fault });
  await checkEntry(folder, manifest, entry);
  const range = host ?? peer;
  return {
    permissions: permissions as ModulePermissions,
    options: optionsIn(modhost.options),
    ...(typeof range === "string" && { host: range }),
    ...(node !== undefined && { node }),
    license: licenseText(manifest.license),
  };
}

/** Returns a licence as one text; "none stated" without one. */
export function licenseText(license: unknown): string {
  if (typeof license === "string" && license !== "") return license;
  // Old packages have an object, or a list of objects.
  const all = (Array.isArray(license) ? license : [license]).flatMap((each) =>
    isTable(each) && typeof each.type === "string" ? [each.type] : [],
  );
  return all.length === 0 ? "none stated" : all.join(" OR ");
}

const satisfies = (version: string, range: string): boolean =>
  semver().satisfies(version, range, { includePrerelease: true });

async function checkEntry(folder: string, manifest: UnpackedManifest, named: unknown): Promise<void> {
  const { name, version } = manifest;
  const entry = named ?? exportOf(manifest.exports) ?? manifest.main ?? "index.js";
  const refuse = (reason: string) => new PackageError("ENTRY_INVALID", { package: name, version, entry, reason });
  if (typeof entry !== "string") throw refuse("which is not a path");
  const path = join(folder, entry);
  const inside = relative(folder, path);
  if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`)) throw refuse("which is not in the package");
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw refuse("which does not exist");
  if (path.endsWith(".ts")) throw refuse("but Node.js runs no TypeScript in packages");
}

/** Returns the target that the package has for an import of its name. */
function exportOf(exports: unknown): unknown {
  if (!isTable(exports)) return exports;
  const conditions = "." in exports ? ["."] : ["import", "node", "default", "require"];
  return conditions.map((condition) => exportOf(exports[condition])).find((target) => target !== undefined);
}

function optionsIn(declared: unknown): DeclaredOption[] {
  if (!isTable(declared)) return [];
  return Object.entries(declared).flatMap(([name, option]) => {
    if (!isTable(option)) return [];
    const { type, default: value, describe } = option;
    const texts = {
      type: typeof type === "string" ? type : "any",
      describe: typeof describe === "string" ? describe : "",
    };
    return [{ name, ...texts, ...(value !== undefined && { default: value }) }];
  });
}
