/**
 * A small npm registry on loopback: documents of packages, archives, and signing keys. Tests change
 * what it serves in order to attack its clients.
 */
import { createHash, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { type PackedEntry, packed } from "./tar.ts";

/** A document of a package, as the registry serves it. */
export interface ServedDocument {
  name: string;
  "dist-tags": Record<string, string>;
  time: Record<string, unknown>;
  versions: Record<string, ServedVersion>;
}

export interface ServedVersion {
  name: string;
  version: string;
  deprecated?: string;
  dist: {
    tarball: string;
    integrity?: string;
    shasum?: string;
    signatures?: { keyid: string; sig: string }[];
    attestations?: { url: string; provenance: { predicateType: string } };
  };
  [field: string]: unknown;
}

export interface Publication {
  readonly name: string;
  readonly version?: string;
  /** Files by path, in addition to the package.json. */
  readonly files?: Readonly<Record<string, string>>;
  /** Fields of the package.json. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  /** More entries of the archive. */
  readonly entries?: readonly PackedEntry[];
  /** The whole archive, instead of one with the files above. */
  readonly archive?: Buffer;
  /** Default: an old date. */
  readonly time?: string;
  readonly publisher?: string;
}

/** Before every date at which a test can run. */
export const LONG_AGO = "2020-01-01T00:00:00.000Z";

export class NpmRegistry {
  readonly url: string;
  readonly documents = new Map<string, ServedDocument>();
  /** Archives and other bodies, by path. */
  readonly bodies = new Map<string, Buffer>();
  /** Paths of all requests, in order. */
  readonly requests: string[] = [];
  /** Headers of the last request for each path. */
  readonly headers = new Map<string, IncomingMessage["headers"]>();
  /** The keys that are listed; none: the registry does not sign. */
  keys: SigningKey[];
  /** Responds instead of the registry; returns false to leave a request to it. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    this.keys = [new SigningKey()];
  }

  static async start(): Promise<NpmRegistry> {
    const server = createServer((request, response) => registry.#respond(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const registry = new NpmRegistry(server);
    return registry;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Publishes a version, signed with the first key, and returns its entry for changes. */
  async publish(publication: Publication): Promise<ServedVersion> {
    const { name, version = "1.0.0", time = LONG_AGO, publisher = "alice" } = publication;
    const manifest = { name, version, license: "MIT", ...publication.manifest };
    const archive = publication.archive ?? (await packageArchive({ ...publication, manifest }));
    const path = `/${name}/-/${name.split("/").at(-1)}-${version}.tgz`;
    this.bodies.set(path, archive);
    const integrity = integrityOf(archive);
    const entry: ServedVersion = {
      ...manifest,
      name,
      version,
      _id: `${name}@${version}`,
      _npmUser: { name: publisher, email: `${publisher}@example.org` },
      dist: {
        tarball: new URL(path, this.url).href,
        integrity,
        shasum: createHash("sha1").update(archive).digest("hex"),
      },
    };
    const [key] = this.keys;
    if (key !== undefined) entry.dist.signatures = [key.sign(`${name}@${version}:${integrity}`)];
    const document = this.documents.get(name) ?? { name, "dist-tags": {}, time: {}, versions: {} };
    document.versions[version] = entry;
    document.time[version] = time;
    document["dist-tags"].latest = version;
    this.documents.set(name, document);
    return entry;
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url ?? "/", this.url).pathname);
    this.requests.push(path);
    this.headers.set(path, request.headers);
    if (this.intercept(request, response)) return;
    const body = this.#bodyOf(path);
    if (body === undefined)
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not_found"}');
    else response.writeHead(200).end(body);
  }

  #bodyOf(path: string): Buffer | string | undefined {
    if (path === "/-/npm/v1/keys")
      return this.keys.length === 0 ? undefined : JSON.stringify({ keys: this.keys.map((key) => key.entry) });
    const document = this.documents.get(path.slice(1));
    return document === undefined ? this.bodies.get(path) : JSON.stringify(document);
  }
}

/** A key with which a registry signs versions. */
export class SigningKey {
  readonly entry: { keyid: string; keytype: string; scheme: string; key: string; expires: string | null };
  readonly #privateKey: KeyObject;

  constructor(expires: string | null = null) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = publicKey.export({ type: "spki", format: "der" }).toString("base64");
    const keyid = `SHA256:${createHash("sha256").update(key).digest("base64")}`;
    this.entry = { keyid, keytype: "ecdsa-sha2-nistp256", scheme: "ecdsa-sha2-nistp256", key, expires };
    this.#privateKey = privateKey;
  }

  sign(text: string): { keyid: string; sig: string } {
    const sig = createSign("SHA256").update(text).sign(this.#privateKey, "base64");
    return { keyid: this.entry.keyid, sig };
  }
}

/** Packs the files of a package as npm does. */
export async function packageArchive({
  files = {},
  manifest = {},
  entries = [],
}: Pick<Publication, "files" | "manifest" | "entries">): Promise<Buffer> {
  const all = { "package.json": JSON.stringify(manifest), ...files };
  const plain = Object.entries(all).map(([path, body]) => ({ name: `package/${path}`, body }));
  return gzipSync(await packed([...plain, ...entries]));
}

export const integrityOf = (archive: Buffer): string =>
  `sha512-${createHash("sha512").update(archive).digest("base64")}`;
