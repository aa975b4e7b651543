/** Determines whether the installed library writes the page layout that `check_pages.ts` reads. */
import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { endianness } from "node:os";

/**
 * The version of the npm package `lmdb` whose files `check_pages.ts` was written for; package.json
 * pins it.
 */
export const LMDB_VERSION = "3.5.6";

/** Returns the version of the installed package; undefined when it is unknown. */
export function installedVersion(): string | undefined {
  try {
    const manifest = findPackageJSON("lmdb", import.meta.url);
    if (manifest === undefined) return undefined;
    return (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version?: string }).version;
  } catch {
    return undefined;
  }
}

/** Returns a sentence that says why pages cannot be checked here; undefined when they can. */
export function whyUnchecked(version = installedVersion(), byteOrder = endianness()): string | undefined {
  const without = "after an unclean end their files are opened without a check of their pages";
  if (version !== LMDB_VERSION) {
    const found = version === undefined ? "of unknown version" : version;
    return `the library lmdb is ${found}, and the layout of its pages is known for ${LMDB_VERSION} only: ${without}`;
  }
  if (byteOrder !== "LE") return `pages of lmdb are read on little-endian machines only: ${without}`;
  return undefined;
}
