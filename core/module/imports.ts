/** Code that an option names: files, and packages that know nothing of modules. */
import { readFile } from "node:fs/promises";
import { createRequire, findPackageJSON } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { importFresh } from "./fresh_import.ts";
import { isPath } from "./locate.ts";

/**
 * Imports a file, whose path counts from `directory`, or an npm package: as seen from there, or else as seen by the
 * host. A file is evaluated anew each time, with what it imports by relative paths.
 */
export async function importNamed(name: string, directory: string): Promise<Record<string, unknown>> {
  if (isPath(name)) {
    const file = resolve(directory, name);
    return importFresh({ name, file, directory: dirname(file), root: undefined });
  }
  const file = await packageEntry(name, directory);
  return file === undefined ? import(name) : import(pathToFileURL(file).href);
}

/** The main file of a package as seen from a folder; undefined where there is no such package. */
async function packageEntry(name: string, directory: string): Promise<string | undefined> {
  const from = join(directory, "package.json");
  try {
    return createRequire(from).resolve(name);
  } catch {
    // It is not there, or for `import` alone.
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

/** What `exports` of a package gives to an import of its name. */
function importTarget(exports: unknown): string | undefined {
  if (typeof exports === "string") return exports;
  if (typeof exports !== "object" || exports === null) return undefined;
  const fields = exports as Record<string, unknown>;
  return importTarget(fields["."] ?? fields.import ?? fields.node ?? fields.default);
}
