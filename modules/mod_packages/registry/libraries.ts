/**
 * The parts of npm that this module uses, with the types of what it needs of them. Each is loaded
 * at its first use.
 */
import { createRequire } from "node:module";

/** Options of npm, as its configuration has them; all libraries take the same object. */
export type NpmOptions = Readonly<Record<string, unknown>>;

export interface PackageSpec {
  readonly type: "git" | "tag" | "version" | "range" | "file" | "directory" | "remote" | "alias";
  readonly name?: string | null;
  readonly rawSpec: string;
}

/** A version of a package, as the registry describes it. */
export interface PublishedVersion {
  readonly name: string;
  readonly version: string;
  readonly deprecated: string | boolean | undefined;
  readonly license: unknown;
  readonly publisher: string | undefined;
  /** When it was published; undefined if the registry does not say. */
  readonly published: string | undefined;
  /** URL of its archive. */
  readonly resolved: string;
  /** Checksums of its archive. */
  readonly integrity: string;
  readonly isSigned: boolean;
  readonly attestations: readonly Attestation[];
}

/** The same as pacote returns it. Its README explains the names. */
interface PacoteManifest {
  readonly name: string;
  readonly version: string;
  readonly deprecated?: string | boolean;
  readonly license?: unknown;
  readonly _npmUser?: { readonly name?: string };
  readonly _resolved?: string;
  readonly _integrity?: string;
  readonly _time?: string;
  readonly _signatures?: readonly unknown[];
  readonly _attestationBundles?: readonly Attestation[];
}

/** A statement about a package, with its signature. */
export interface Attestation {
  readonly bundle: {
    readonly dsseEnvelope: { readonly payload: string };
    readonly verificationMaterial: {
      readonly certificate?: { readonly rawBytes: string };
      readonly x509CertificateChain?: { readonly certificates: readonly { readonly rawBytes: string }[] };
    };
  };
}

/** The document of a package in the registry. */
export interface Packument {
  readonly name: string;
  readonly "dist-tags"?: Readonly<Record<string, string>>;
  readonly versions?: Readonly<Record<string, unknown>>;
  /** When each version was published; `unpublished` if all were removed. */
  readonly time?: Readonly<Record<string, unknown>>;
}

/** A stream of npm's own kind. */
export interface ArchiveStream {
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "end", listener: () => void): unknown;
}

interface Pacote {
  packument(spec: string, options: NpmOptions): Promise<Packument>;
  manifest(spec: string, options: NpmOptions): Promise<PacoteManifest>;
  readonly tarball: {
    stream<T>(spec: string, read: (stream: ArchiveStream) => Promise<T>, options: NpmOptions): Promise<T>;
  };
}

/** A package in the tree that Arborist computes. */
export interface TreeNode {
  /** Path relative to the root, with slashes: "node_modules/x". */
  readonly location: string;
  readonly isRoot: boolean;
  readonly isLink: boolean;
  /** Whether it is optional and does not run on this machine. */
  readonly inert?: boolean;
  readonly packageName: string;
  readonly version: string;
}

interface Tree {
  readonly inventory: { values(): Iterable<TreeNode> };
}

interface ArboristConstructor {
  new (options: NpmOptions): { buildIdealTree(): Promise<Tree> };
}

interface NpmConfig {
  load(): Promise<void>;
  readonly flat: NpmOptions;
}

interface NpmConfigConstructor {
  new (settings: Readonly<Record<string, unknown>>): NpmConfig;
}

export interface NpmDefinitions {
  readonly definitions: unknown;
  readonly shorthands: unknown;
  readonly flatten: unknown;
  readonly nerfDarts: unknown;
}

interface RegistryFetch {
  json(path: string, options: NpmOptions): Promise<unknown>;
  pickRegistry(spec: string, options: NpmOptions): string;
}

export const pacote = (): Pacote => createRequire(import.meta.url)("pacote");
export const arborist = (): ArboristConstructor => createRequire(import.meta.url)("@npmcli/arborist");
export const npmConfig = (): NpmConfigConstructor => createRequire(import.meta.url)("@npmcli/config");
export const npmDefinitions = (): NpmDefinitions =>
  createRequire(import.meta.url)("@npmcli/config/lib/definitions/index.js");
export const registryFetch = (): RegistryFetch => createRequire(import.meta.url)("npm-registry-fetch");
export const semver = (): typeof import("semver") => createRequire(import.meta.url)("semver");

/** Returns a version of a package. Options of pacote decide what is verified. */
export async function publishedVersion(spec: string, options: NpmOptions): Promise<PublishedVersion> {
  const found = await pacote().manifest(spec, options);
  const { name, version, deprecated, license } = found;
  return {
    name,
    version,
    deprecated,
    license,
    publisher: found._npmUser?.name,
    published: found._time,
    resolved: found._resolved ?? "",
    integrity: found._integrity ?? "",
    isSigned: (found._signatures ?? []).length > 0,
    attestations: found._attestationBundles ?? [],
  };
}

interface CertificateParser {
  parse(der: Buffer): {
    extension(oid: string): { readonly valueObj: { readonly subs: readonly { readonly value: Buffer }[] } } | undefined;
  };
}

/** Returns the text in an extension of a certificate (DER in base64); undefined if it has none. */
export function certificateText(der: string, oid: string): string | undefined {
  const { X509Certificate }: { X509Certificate: CertificateParser } = createRequire(import.meta.url)("@sigstore/core");
  const [text] = X509Certificate.parse(Buffer.from(der, "base64")).extension(oid)?.valueObj.subs ?? [];
  return text?.value.toString();
}

/** Parses what stands for a package in a dependency or on a command line. */
export function parseSpec(text: string): PackageSpec {
  const npa: (text: string) => PackageSpec = createRequire(import.meta.url)("npm-package-arg");
  return npa(text);
}
