/** Reads the package.json of an unpacked package. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../../../core/index.ts";
import { PackageError } from "../errors.ts";

const MAX_BYTES = 1024 * 1024;

/** The fields of a package.json that this module reads. Only the first two are checked here. */
export interface UnpackedManifest {
  readonly name: string;
  readonly version: string;
  readonly license?: unknown;
  readonly main?: unknown;
  readonly exports?: unknown;
  readonly modhost?: unknown;
  readonly gypfile?: unknown;
  readonly scripts?: unknown;
  readonly engines?: unknown;
  readonly dependencies?: unknown;
  readonly optionalDependencies?: unknown;
  readonly peerDependencies?: unknown;
  readonly peerDependenciesMeta?: unknown;
  readonly bundleDependencies?: unknown;
  readonly bundledDependencies?: unknown;
}

/** @throws {PackageError} MANIFEST_INVALID */
export async function readManifest(folder: string, name: string): Promise<UnpackedManifest> {
  const refuse = (reason: string) => new PackageError("MANIFEST_INVALID", { package: name, reason });
  const path = join(folder, "package.json");
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw refuse("the file is missing");
  if (found.size > MAX_BYTES) throw refuse(`it has more than ${MAX_BYTES} bytes`);
  let manifest: unknown;
  try {
    manifest = JSON.parse((await readFile(path, "utf8")).replace(/^\uFEFF/, ""));
  } catch (error) {
    throw refuse(reasonOf(error));
  }
  if (!isTable(manifest)) throw refuse("it must be an object");
  for (const field of ["name", "version"])
    if (typeof manifest[field] !== "string") throw refuse(`its ${field} must be a text`);
  return manifest as unknown as UnpackedManifest;
}

export const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns a field of a manifest that maps names to texts; empty if it is missing.
 * @throws {PackageError} MANIFEST_INVALID
 */
export function textsIn(manifest: UnpackedManifest, field: keyof UnpackedManifest): Record<string, string> {
  const table = manifest[field] ?? {};
  if (isTable(table) && Object.values(table).every((value) => typeof value === "string"))
    return table as Record<string, string>;
  throw new PackageError("MANIFEST_INVALID", {
    package: manifest.name,
    reason: `its ${field} must be an object of texts`,
  });
}
