import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";

/** The folder of this package, run from source or built. */
export function packageFolder(): string {
  const manifest = findPackageJSON(import.meta.url);
  if (manifest === undefined) throw new Error("the package.json of modhost is missing: install the package again");
  return dirname(manifest);
}

/** The version of this package, as its manifest says it. */
export function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8"));
  return manifest.version;
}
