import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What the program reads of its own manifest. */
export interface PackageManifest {
  readonly version: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The folder of the modules that come with the host: sources in a clone, JavaScript in the package. */
export const bundledModules = fileURLToPath(new URL("../../modules", import.meta.url));

/** True in a clone, where the host runs from its sources. */
export const isClone = import.meta.url.endsWith(".ts");

/** The folder of this package, run from source or built. */
export function packageFolder(): string {
  const folder = projectFolder(dirname(fileURLToPath(import.meta.url)));
  if (folder === undefined) throw new Error("the package.json of modhost is missing: install the package again");
  return folder;
}

/** The manifest of this package. */
export function packageManifest(): PackageManifest {
  return JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8"));
}

/** The version of this package, as its manifest says it. */
export function packageVersion(): string {
  return packageManifest().version;
}

/** The nearest folder, from `start` up, that holds a package.json. */
export function projectFolder(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}
