/** Verifies what the registry says about one version of a package, before it is fetched. */
import { PackageError } from "../errors.ts";
import type { VerifiedFact } from "../lockfile/format.ts";
import { isExcepted, type PackageSettings } from "../settings.ts";
import { periodText } from "../text.ts";
import { type Attestation, certificateText, type PublishedVersion, publishedVersion } from "./libraries.ts";
import { codeOf, type Registries } from "./registries.ts";

const SECOND = 1000;

/** A version of a package whose registry entry was verified. */
export interface VerifiedVersion {
  readonly name: string;
  readonly version: string;
  /** URL of its archive, at the registry. */
  readonly resolved: string;
  /** SHA-512 of its archive. */
  readonly integrity: string;
  readonly license: unknown;
  readonly deprecated?: string;
  readonly publisher?: string;
  readonly published?: string;
  readonly repository?: string;
  readonly verified: readonly VerifiedFact[];
}

/**
 * Checks the signature, the provenance, the checksum, the registry and the age of a version.
 * @throws {PackageError} with a code for each of them
 */
export async function verifyVersion(
  { name, version }: { readonly name: string; readonly version: string },
  registries: Registries,
  settings: PackageSettings,
): Promise<VerifiedVersion> {
  const registry = registries.registryOf(name);
  const keys = await registries.keysOf(registry);
  const found = await signedVersion({ name, version, registry, keys }, registries, settings);
  const details = { package: name, version, registry };
  const { resolved, integrity, license, publisher, published } = found;
  if (keys.length > 0 && !found.isSigned) throw new PackageError("SIGNATURE_MISSING", details);
  const sha512 = integrity.split(/\s+/).find((each) => each.startsWith("sha512-"));
  if (sha512 === undefined) throw new PackageError("INTEGRITY_WEAK", details);
  const host = URL.parse(resolved)?.host ?? resolved;
  if (host !== new URL(registry).host) throw new PackageError("REGISTRY_OTHER", { ...details, host });
  assertAge(found, registry, settings);
  const provenance = settings.verifyProvenance ? found.attestations.filter(isProvenance) : [];
  const repository = repositoryIn(provenance);
  const deprecated = found.deprecated === true ? "its authors give no reason" : found.deprecated;
  return {
    name,
    version,
    resolved,
    integrity: sha512,
    license,
    ...(deprecated && { deprecated }),
    ...(publisher !== undefined && { publisher }),
    ...(published !== undefined && { published: new Date(published).toISOString() }),
    ...(repository !== undefined && { repository }),
    verified: [
      "integrity",
      ...(keys.length > 0 ? (["signature"] as const) : []),
      ...(provenance.length > 0 ? (["provenance"] as const) : []),
    ],
  };
}

interface SignedVersion {
  readonly name: string;
  readonly version: string;
  readonly registry: string;
  readonly keys: readonly unknown[];
}

/** Lets npm's library verify signatures and provenance. */
async function signedVersion(
  { name, version, registry, keys }: SignedVersion,
  registries: Registries,
  { verifyProvenance }: PackageSettings,
): Promise<PublishedVersion> {
  const { host, pathname } = new URL(registry);
  try {
    return await publishedVersion(`${name}@${version}`, {
      ...registries.options,
      verifySignatures: keys.length > 0,
      verifyAttestations: verifyProvenance,
      [`//${host}${pathname}:_keys`]: keys,
    });
  } catch (error) {
    const details = { package: name, version, registry, reason: (error as Error).message };
    switch (codeOf(error)) {
      case "EINTEGRITYSIGNATURE":
        throw new PackageError("SIGNATURE_INVALID", details);
      case "EMISSINGSIGNATUREKEY":
        throw new PackageError("SIGNATURE_KEY_UNKNOWN", details);
      case "EEXPIREDSIGNATUREKEY":
        throw new PackageError("SIGNATURE_KEY_EXPIRED", details);
      case "EATTESTATIONSUBJECT":
      case "EATTESTATIONVERIFY":
        throw new PackageError("PROVENANCE_INVALID", details);
      case "ETARGET":
      case "ENOVERSIONS":
        throw new PackageError("VERSION_REMOVED", details);
      default:
        throw registries.fetchError(error, name);
    }
  }
}

/** The rule holds for dependencies as well, which may be attacked in the same way. */
function assertAge(found: PublishedVersion, registry: string, settings: PackageSettings): void {
  const { name, version, published } = found;
  const { minimumReleaseAge: minimum, exceptions, now } = settings;
  if (minimum === 0 || isExcepted(exceptions.releaseAge, name, version)) return;
  const since = published === undefined ? Number.NaN : Date.parse(published);
  if (Number.isNaN(since)) throw new PackageError("RELEASE_AGE_UNKNOWN", { package: name, version, registry });
  if (now() - since < minimum * SECOND) throw tooYoung({ name, version, since }, settings);
}

/** Returns the error for a version that was published too recently. */
export function tooYoung(
  { name, version, since }: { readonly name: string; readonly version: string; readonly since: number },
  { minimumReleaseAge: minimum, now }: PackageSettings,
): PackageError {
  return new PackageError("VERSION_TOO_YOUNG", {
    package: name,
    version,
    age: periodText((now() - since) / SECOND),
    minimum: periodText(minimum),
    until: new Date(since + minimum * SECOND).toISOString(),
  });
}

/** The extension of Sigstore's certificates with the URL of the repository that a build used. */
const SOURCE_REPOSITORY = "1.3.6.1.4.1.57264.1.12";

/** Whether a statement says how a package was built. Others say only who published it. */
function isProvenance({ bundle }: Attestation): boolean {
  const { predicateType } = JSON.parse(Buffer.from(bundle.dsseEnvelope.payload, "base64").toString());
  return typeof predicateType === "string" && predicateType.startsWith("https://slsa.dev/provenance/");
}

/**
 * Returns the repository that a package was built from. The certificate has it from the build
 * service; the statement itself could name any repository.
 */
function repositoryIn(provenance: readonly Attestation[]): string | undefined {
  return provenance
    .map(({ bundle: { verificationMaterial: material } }) => {
      const { rawBytes } = material.certificate ?? material.x509CertificateChain?.certificates[0] ?? {};
      return rawBytes === undefined ? undefined : certificateText(rawBytes, SOURCE_REPOSITORY);
    })
    .find((repository) => repository !== undefined);
}
