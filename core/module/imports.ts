/** Imports code that an option names: files, and packages that do not know about modules. */
import { readFile } from "node:fs/promises";
import { createRequire, findPackageJSON } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { importFresh } from "./fresh_import.ts";
import { isPath } from "./locate.ts";

/**
 * Imports a file by a path relative to `directory`, or an npm package resolved from there, or else
 * from the host. A file is evaluated again each time, with the files that it imports by relative
 * paths.
 */
export async function importNamed(name: string, directory: string): Promise<Record<string, unknown>> {
  if (isPath(name)) {
    const file = resolve(directory, name);
    return importFresh({ name, file, directory: dirname(file), root: undefined });
  }
  const file = await packageEntry(name, directory);
  return file === undefined ? import(name) : import(pathToFileURL(file).href);
}

/**
 * Returns the main file of a package as seen from a folder; undefined if there is no such package.
 */
async function packageEntry(name: string, directory: string): Promise<string | undefined> {
  const from = join(directory, "package.json");
  try {
    return createRequire(from).resolve(name);
  } catch {
    // The package is missing, or its exports have only an `import` condition.
  }
  const manifest = findManifest(name, from);
  if (manifest === undefined) return undefined;
  const { exports } = JSON.parse(await readFile(manifest, "utf8")) as { exports?: unknown };
  const entry = importTarget(exports);
  return entry === undefined ? undefined : join(dirname(manifest), entry);
}

function findManifest(name: string, from: string): string | undefined {
  try {
    return findPackageJSON(name, pathToFileURL(from));
  } catch {
    return undefined;
  }
}

/** Returns the target that `exports` of a package has for an import of its name. */
function importTarget(exports: unknown): string | undefined {
  if (typeof exports === "string") return exports;
  if (typeof exports !== "object" || exports === null) return undefined;
  const fields = exports as Record<string, unknown>;
  return importTarget(fields["."] ?? fields.import ?? fields.node ?? fields.default);
}
