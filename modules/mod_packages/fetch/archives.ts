/** Fetches the archives of packages, and unpacks them into the folder of the module's package. */
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { readManifest, type UnpackedManifest } from "../archive/read_manifest.ts";
import { installScript } from "../archive/scripts.ts";
import { type TreeBudget, unpack } from "../archive/unpack.ts";
import { PackageError } from "../errors.ts";
import { type ArchiveStream, arborist, pacote } from "../registry/libraries.ts";
import { codeOf, type Registries } from "../registry/registries.ts";
import { isExcepted, type PackageSettings } from "../settings.ts";

/** Archives that are fetched at the same time. */
export const PARALLEL_ARCHIVES = 6;

/** An archive to fetch. */
export interface WantedArchive {
  /** The name for messages. */
  readonly name: string;
  readonly version: string;
  /** A URL, or `file:` and an absolute path of a tarball or a folder. */
  readonly resolved: string;
  /** The expected checksum; undefined for a file that was not installed before. */
  readonly integrity?: string;
  /** Its path below the module's package; empty for the module's own package. */
  readonly location: string;
}

export interface UnpackedPackage {
  readonly manifest: UnpackedManifest;
  readonly integrity: string;
}

/** Fetches and unpacks one archive. A folder is packed as npm does it, without running scripts. */
export async function fetchArchive(
  { name, version, resolved, integrity, location }: WantedArchive,
  { root, budget, registries }: { root: string; budget: TreeBudget; registries: Registries },
): Promise<UnpackedPackage> {
  const isFile = resolved.startsWith("file:");
  let failed: { readonly error: unknown } | undefined;
  const abort = new AbortController();
  const read = async (stream: ArchiveStream) => {
    const archive = new PassThrough();
    stream.on("error", (error) => archive.destroy(error));
    archive.on("error", () => undefined);
    // npm's library tries again after some errors. The files of the first attempt are in the way.
    if (failed !== undefined) throw failed.error;
    // npm's library ignores backpressure, so that a fast sender could fill the memory. Everything
    // is counted as it arrives.
    stream.on("data", (chunk) => {
      try {
        budget.addReceived(chunk.length);
        archive.write(chunk);
      } catch (error) {
        archive.destroy(error as Error);
      }
    });
    stream.on("end", () => archive.end());
    try {
      return await unpack(archive, { root, path: location, name, budget });
    } catch (error) {
      failed = { error };
      abort.abort();
      throw error;
    }
  };
  try {
    const unpacked = await pacote().tarball.stream(isFile ? resolved : `${name}@${resolved}`, read, {
      ...registries.options,
      Arborist: arborist(),
      allowDirectory: "all",
      allowFile: "all",
      allowRemote: "all",
      preferOnline: true,
      signal: abort.signal,
      // Local files are not copied into the cache.
      ...(isFile && { cache: undefined }),
      ...(integrity !== undefined && { integrity }),
    });
    return { ...unpacked, manifest: await readManifest(join(root, location), name) };
  } catch (error) {
    if (codeOf(error) === "EINTEGRITY") {
      throw new PackageError("INTEGRITY", {
        package: name,
        version,
        by: isFile ? "modules.lock" : registries.registryOf(name),
      });
    }
    throw isFile ? error : registries.fetchError(error, name);
  }
}

/** @throws {PackageError} MANIFEST_OTHER */
export function assertSame({ name, version }: WantedArchive, manifest: UnpackedManifest): void {
  if (manifest.name === name && manifest.version === version) return;
  const found = `${manifest.name} ${manifest.version}`;
  throw new PackageError("MANIFEST_OTHER", { package: name, version, found });
}

/** @throws {PackageError} SCRIPTS */
export async function assertNoScripts(
  folder: string,
  manifest: UnpackedManifest,
  { exceptions }: Pick<PackageSettings, "exceptions">,
): Promise<void> {
  const { name, version } = manifest;
  if (isExcepted(exceptions.scripts, name, version)) return;
  const script = await installScript(folder, manifest);
  if (script !== undefined) throw new PackageError("SCRIPTS", { package: name, version, script });
}
