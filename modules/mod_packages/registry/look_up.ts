/** Finds the version of a package that a source asks for. */
import { PackageError } from "../errors.ts";
import { isExcepted, type PackageSettings } from "../settings.ts";
import type { RegistrySource } from "../source.ts";
import { type Packument, type PublishedVersion, semver } from "./libraries.ts";
import type { Registries } from "./registries.ts";
import { tooYoung } from "./verify.ts";

const SECOND = 1000;

/**
 * Returns the newest version that matches and is old enough.
 * @throws {PackageError} PACKAGE_NOT_FOUND, VERSION_NOT_FOUND, VERSION_REMOVED, VERSION_TOO_YOUNG,
 * VERSION_DEPRECATED
 */
export async function lookUp(
  { names, wanted }: RegistrySource,
  registries: Registries,
  settings: PackageSettings,
): Promise<PublishedVersion> {
  for (const name of names) {
    const document = await registries.packument(name);
    if (document !== undefined) return await versionIn(document, name, wanted, registries, settings);
  }
  const registry = registries.registryOf(names[0] as string);
  throw new PackageError("PACKAGE_NOT_FOUND", { registry, names: names.join(" or ") });
}

async function versionIn(
  document: Packument,
  name: string,
  wanted: string,
  registries: Registries,
  settings: PackageSettings,
): Promise<PublishedVersion> {
  const found = await oldEnough(name, wanted, registries, settings);
  if (found === undefined) throw notFound(document, name, wanted, registries.registryOf(name));
  const { version, deprecated } = found;
  if (deprecated && !isExcepted(settings.exceptions.deprecated, name, version)) {
    const reason = deprecated === true ? "its authors give no reason" : deprecated.replace(/\.$/, "");
    throw new PackageError("VERSION_DEPRECATED", { package: name, version, reason });
  }
  return found;
}

/**
 * Returns the newest matching version among those that are old enough or excepted; undefined if
 * none matches.
 * @throws {PackageError} VERSION_TOO_YOUNG if one matches that is too young
 */
export async function oldEnough(
  name: string,
  wanted: string,
  registries: Registries,
  settings: PackageSettings,
): Promise<PublishedVersion | undefined> {
  const newest = await registries.pick(name, wanted);
  const { minimumReleaseAge: minimum, exceptions, now } = settings;
  if (newest === undefined || minimum === 0 || isExcepted(exceptions.releaseAge, name, newest.version)) return newest;
  const older = await registries.pick(name, wanted, new Date(now() - minimum * SECOND));
  if (older !== undefined) return older;
  throw tooYoung({ name, version: newest.version, since: Date.parse(newest.published ?? "") }, settings);
}

function notFound({ versions, time, "dist-tags": tags }: Packument, name: string, wanted: string, registry: string) {
  const available = Object.keys(versions ?? {});
  const published = Object.keys(time ?? {}).filter((version) => semver().valid(version) !== null);
  const gone = published.filter((version) => !available.includes(version) && semver().satisfies(version, wanted));
  const version = gone.at(-1);
  if (version !== undefined || time?.unpublished !== undefined) {
    return new PackageError("VERSION_REMOVED", { package: name, version: version ?? (wanted || "(all)"), registry });
  }
  return new PackageError("VERSION_NOT_FOUND", { package: name, wanted, latest: tags?.latest ?? "unknown" });
}
