import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { domainToASCII } from "node:url";
import type { CertificateOrder, CertificateState } from "../types.ts";
import { unbracketed } from "../util/brackets.ts";
import { makePrivateFolder } from "../util/private_folder.ts";
import { writeFileAtomic } from "../util/write_file_atomic.ts";
import { filesOf } from "./acme/files.ts";
import type { AcmeSettings } from "./acme/index.ts";
import {
  asciiName,
  type CertificateFiles,
  everyName,
  invalid,
  type Loaded,
  loadedPair,
  oldestVersion,
  readPair,
} from "./pair.ts";
import type { PemPair } from "./self_signed.ts";

export type { CertificateFiles } from "./pair.ts";

/** The methods of a logger that are used here. */
export interface TlsLog {
  info(format: string, ...values: unknown[]): void;
  warn(format: string, ...values: unknown[]): void;
}

export interface CertificatesOptions {
  /** The folder of the self-signed certificate; it is created if it is missing. */
  readonly directory: string;
  /** Absolute paths of PEM files by host name, "*.example.org" or "*". */
  readonly certificates: Readonly<Record<string, CertificateFiles>> | undefined;
  /** Names that the self-signed certificate covers in addition to those of this machine. */
  readonly hosts: readonly string[];
  /** Names whose certificates come from an authority. */
  readonly acme?: AcmeSettings | undefined;
  readonly log: TlsLog;
}

/** How the files have changed since they were read. */
export interface Refreshed {
  /** Names with a new certificate. */
  readonly changed: readonly string[];
  /** Names whose files cannot be used; they keep their previous certificates. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

interface Read extends Refreshed {
  readonly loaded: Map<string, Loaded>;
}

type SniCallback = NonNullable<TlsOptions["SNICallback"]>;

/** The self-signed certificate is replaced this long before it expires, in milliseconds. */
const RENEWAL_TIME = 30 * 86_400_000;

/**
 * The certificates of the server. A client gets the one configured for its server name (SNI), else
 * that of the wildcard above the name, else that of "*", else a self-signed one, which is created
 * at the first start and stored. Names without a configured certificate may have one from an
 * authority.
 */
export class Certificates {
  #options: CertificatesOptions;
  #loaded: ReadonlyMap<string, Loaded> = new Map();
  #makesSelfSigned = true;
  /** Returns the states of orders by ACME, by name; the code that orders certificates sets it. */
  orders: () => ReadonlyMap<string, CertificateOrder> = () => new Map();

  constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  /**
   * Reads all certificates. If none is configured for "*", it creates the self-signed one, unless
   * `selfSigned` is false.
   * @throws {ModhostError} TLS_INVALID naming the host and the file
   */
  async prepare({ selfSigned = true } = {}): Promise<void> {
    const { loaded, failed } = await this.#readConfigured();
    for (const { error } of failed) throw error;
    this.#warn(loaded.values());
    if (!loaded.has(everyName) && selfSigned) loaded.set(everyName, await this.#selfSigned());
    this.#makesSelfSigned = selfSigned;
    this.#loaded = loaded;
  }

  /**
   * Reads the configured certificates without using them.
   * @throws {ModhostError} TLS_INVALID
   */
  async verify(): Promise<void> {
    const { loaded, failed } = await this.#readConfigured();
    for (const { error } of failed) throw error;
    this.#warn(loaded.values());
  }

  /** Returns what `refresh` would find, without a change. */
  async compare(certificates = this.#options.certificates): Promise<Refreshed> {
    const { changed, failed } = await this.#readConfigured(certificates);
    return { changed, failed };
  }

  /**
   * Reads the files again, each name separately: an invalid file does not affect other names. New
   * connections get the new certificates; a listener's own `cert` and `key`, for clients that send
   * no host name, are updated by `setSecureContext(options())`. A self-signed certificate that is
   * about to expire is replaced.
   */
  async refresh(): Promise<Refreshed> {
    const { loaded, failed, changed } = await this.#readConfigured();
    this.#warn(changed.map((name) => loaded.get(name) as Loaded));
    const names = [...changed];
    if (!loaded.has(everyName) && this.#makesSelfSigned) {
      const own = await this.#selfSigned();
      if (own.fingerprint !== this.#loaded.get(everyName)?.fingerprint) names.push(everyName);
      loaded.set(everyName, own);
    }
    this.#loaded = loaded;
    return { changed: names, failed };
  }

  /**
   * Switches to other certificates; if one of them is invalid, nothing changes. The returned
   * function restores the previous ones.
   * @throws {ModhostError} TLS_INVALID
   */
  async configure(options: Omit<CertificatesOptions, "log">, how: { selfSigned?: boolean } = {}): Promise<() => void> {
    const previous = this.#options;
    const loaded = this.#loaded;
    const makes = this.#makesSelfSigned;
    const restore = () => {
      this.#options = previous;
      this.#loaded = loaded;
      this.#makesSelfSigned = makes;
    };
    this.#options = { ...options, log: previous.log };
    try {
      await this.prepare(how);
    } catch (error) {
      restore();
      throw error;
    }
    return restore;
  }

  /** Whether there is a certificate for every client. */
  get isReady(): boolean {
    return this.#loaded.has(everyName);
  }

  /**
   * Returns the options of a TLS listener, with `cert` and `key` if `isReady`. The callback always
   * returns the current certificate. The listener sets ALPN itself.
   */
  options(): TlsOptions & { SNICallback: SniCallback } {
    const own = this.#loaded.get(everyName);
    return {
      ...(own === undefined ? {} : { cert: own.certificate, key: own.key }),
      minVersion: oldestVersion,
      SNICallback: (name, respond) => {
        try {
          respond(null, this.#choose(name).context);
        } catch (error) {
          respond(error as Error);
        }
      },
    };
  }

  /** Returns all certificates in use by name, and those that are ordered. */
  states(): CertificateState[] {
    const orders = this.orders();
    const served = [...this.#loaded].map(([name, { source, validTo, fingerprint }]): CertificateState => {
      const order = source === "acme" ? orders.get(name) : undefined;
      return { name, source, expires: validTo.toISOString(), fingerprint, ...(order && { order }) };
    });
    const awaited = [...orders].filter(([name]) => !this.#loaded.has(name));
    return [...served, ...awaited.map(([name, order]): CertificateState => ({ name, source: "acme", order }))];
  }

  /** Returns the validity of each certificate, by name. */
  validity(): ReadonlyMap<string, Pick<Loaded, "validFrom" | "validTo" | "fingerprint">> {
    return this.#loaded;
  }

  /** Returns true if the self-signed certificate must be replaced, which `refresh` does. */
  isSelfSignedEnding(now = Date.now()): boolean {
    const own = this.#loaded.get(everyName);
    return own?.source === "self-signed" && own.validTo.getTime() <= now + RENEWAL_TIME;
  }

  /** The ACME settings; undefined if nothing is ordered. */
  get acme(): AcmeSettings | undefined {
    return this.#options.acme;
  }

  /** Returns the files of the configured certificates and keys. */
  files(): string[] {
    return Object.values(this.#options.certificates ?? {}).flatMap(({ certificate, key }) => [certificate, key]);
  }

  /** Forgets keys and certificates; open connections are not affected. */
  close(): void {
    this.#loaded = new Map();
  }

  #warn(pairs: Iterable<Loaded>): void {
    for (const { warnings } of pairs) for (const warning of warnings) this.#options.log.warn(...warning);
  }

  #choose(name: string): Loaded {
    const serverName = name.toLowerCase();
    const wildcard = serverName.replace(/^[^.]+/, everyName);
    const found = this.#loaded.get(serverName) ?? this.#loaded.get(wildcard) ?? this.#loaded.get(everyName);
    if (found === undefined) throw invalid(name || everyName, "no certificate is loaded: the server is not running");
    return found;
  }

  async #readConfigured(certificates = this.#options.certificates): Promise<Read> {
    const loaded = new Map<string, Loaded>();
    const changed: string[] = [];
    const failed: { name: string; error: unknown }[] = [];
    for (const [host, files] of Object.entries(certificates ?? {})) {
      const name = asciiName(host);
      const previous = this.#loaded.get(name);
      const own = previous?.source === "file" ? previous : undefined;
      try {
        const pair = await readPair(host, files, own);
        loaded.set(name, pair);
        if (pair !== own) changed.push(name);
      } catch (error) {
        failed.push({ name, error });
        if (own !== undefined) loaded.set(name, own);
      }
    }
    const { hosts, folder = "" } = this.#options.acme ?? { hosts: [] };
    for (const name of hosts) {
      if (loaded.has(name)) continue;
      const previous = this.#loaded.get(name);
      const own = previous?.source === "acme" ? previous : undefined;
      // A certificate that does not exist yet or is damaged is being ordered.
      const pair = await readPair(name, filesOf(folder, name), own, "acme").catch(() => own);
      if (pair !== undefined) loaded.set(name, pair);
      if (pair !== undefined && pair !== own) changed.push(name);
    }
    return { loaded, changed, failed };
  }

  async #selfSigned(): Promise<Loaded> {
    const { directory, log } = this.#options;
    const files = { certificate: join(directory, "self-signed.crt"), key: join(directory, "self-signed.key") };
    const names = this.#options.hosts.map(unbracketed);
    const stored = await readStored(files, names);
    if (stored !== undefined) return loadedPair(stored, "self-signed");
    const machine = domainToASCII(hostname());
    const local = ["localhost", "127.0.0.1", "::1", ...(machine === "" ? [] : [machine])];
    // Most starts create no certificate, and this library is slow to load.
    const { makeSelfSigned } = await import("./self_signed.ts");
    const pair = await makeSelfSigned([...new Set([...names, ...local])]);
    makePrivateFolder(directory);
    await writeFileAtomic(files.key, pair.key, 0o600);
    await writeFileAtomic(files.certificate, pair.certificate, 0o644);
    log.info("created a self-signed certificate: %s", files.certificate);
    return loadedPair(pair, "self-signed");
  }
}

/**
 * Returns the pair that was created at an earlier start; undefined if it is missing, damaged, about
 * to expire, or not valid for one of the names.
 */
async function readStored(files: CertificateFiles, names: readonly string[]): Promise<PemPair | undefined> {
  try {
    const [certificate, key] = await Promise.all([readFile(files.certificate, "utf8"), readFile(files.key, "utf8")]);
    const parsed = new X509Certificate(certificate);
    const covers = (name: string) => parsed.checkHost(name) !== undefined || parsed.checkIP(name) !== undefined;
    const good =
      parsed.validToDate.getTime() > Date.now() + RENEWAL_TIME &&
      parsed.checkPrivateKey(createPrivateKey(key)) &&
      names.every(covers);
    return good ? { certificate, key } : undefined;
  } catch {
    return undefined;
  }
}
