import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The parts of the package's own manifest that the program reads. */
export interface PackageManifest {
  readonly version: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/**
 * The folder of the modules that come with the host: TypeScript in the source tree, JavaScript in
 * the package.
 */
export const bundledModules = fileURLToPath(new URL("../../modules", import.meta.url));

/** Returns the folder of this package, whether it runs from source or built. */
export function packageFolder(): string {
  const folder = projectFolder(dirname(fileURLToPath(import.meta.url)));
  if (folder === undefined) throw new Error("the package.json of modhost is missing: install the package again");
  return folder;
}

/** Returns the manifest of this package. */
export function packageManifest(): PackageManifest {
  return JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8"));
}

/** Returns the version of this package. */
export function packageVersion(): string {
  return packageManifest().version;
}

/** Returns the nearest folder, from `start` upwards, that contains a package.json. */
export function projectFolder(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}
