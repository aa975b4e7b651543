import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { domainToASCII } from "node:url";
import type { CertificateOrder, CertificateState } from "../types.ts";
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

/** What is asked of a logger here. */
export interface TlsLog {
  info(format: string, ...values: unknown[]): void;
  warn(format: string, ...values: unknown[]): void;
}

export interface CertificatesOptions {
  /** Folder of the self-signed certificate; made when missing. */
  readonly directory: string;
  /** Absolute paths of PEM files by host name, "*.example.org" or "*". */
  readonly certificates: Readonly<Record<string, CertificateFiles>> | undefined;
  /** Names that the self-signed certificate covers beside those of this machine. */
  readonly hosts: readonly string[];
  /** Names that get theirs from an authority. */
  readonly acme?: AcmeSettings | undefined;
  readonly log: TlsLog;
}

/** What the files have become since they were read. */
export interface Refreshed {
  /** Names with another certificate. */
  readonly changed: readonly string[];
  /** Names whose files cannot be used: what they had before is kept. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

interface Read extends Refreshed {
  readonly loaded: Map<string, Loaded>;
}

type SniCallback = NonNullable<TlsOptions["SNICallback"]>;

/** The self-signed certificate is made anew this long before it expires, milliseconds. */
const RENEWAL_TIME = 30 * 86_400_000;

/**
 * The certificates of the server. A client gets the one configured for the name it asks for (SNI), else the one of the
 * wildcard above that name, else the one of "*", else a self-signed one, made at first start and kept. Names without a
 * configured one may have theirs from an authority.
 */
export class Certificates {
  #options: CertificatesOptions;
  #loaded: ReadonlyMap<string, Loaded> = new Map();
  #makesSelfSigned = true;
  /** How it stands with what is ordered by ACME, by name; whoever orders says so. */
  orders: () => ReadonlyMap<string, CertificateOrder> = () => new Map();

  constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  /**
   * Reads all certificates; where none of "*" is configured makes the self-signed one, unless there is to be none.
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
   * Reads the configured certificates and changes nothing.
   * @throws {ModhostError} TLS_INVALID
   */
  async verify(): Promise<void> {
    const { loaded, failed } = await this.#readConfigured();
    for (const { error } of failed) throw error;
    this.#warn(loaded.values());
  }

  /**
   * Reads the files again; when one is wrong all former certificates stay.
   * @throws {ModhostError} TLS_INVALID
   */
  reload(): Promise<void> {
    return this.prepare({ selfSigned: this.#makesSelfSigned });
  }

  /** What `refresh` would find; changes nothing. */
  async compare(certificates = this.#options.certificates): Promise<Refreshed> {
    const { changed, failed } = await this.#readConfigured(certificates);
    return { changed, failed };
  }

  /**
   * Reads the files again, each name for itself: what is wrong with one keeps no other from its new certificate. New
   * connections get the new ones; a listener's own `cert` and `key`, for clients that name no host, follow by
   * `setSecureContext(options())`. A self-signed certificate that is about to expire is made anew.
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
   * Other certificates from now on; when one of them is wrong, nothing changes. The returned function brings the former
   * ones back.
   * @throws {ModhostError} TLS_INVALID
   */
  async configure(options: Omit<CertificatesOptions, "log">, how: { selfSigned?: boolean } = {}): Promise<() => void> {
    const [former, loaded, makes] = [this.#options, this.#loaded, this.#makesSelfSigned];
    const restore = () => {
      this.#options = former;
      this.#loaded = loaded;
      this.#makesSelfSigned = makes;
    };
    this.#options = { ...options, log: former.log };
    try {
      await this.prepare(how);
    } catch (error) {
      restore();
      throw error;
    }
    return restore;
  }

  /** There is a certificate for whoever asks. */
  get isReady(): boolean {
    return this.#loaded.has(everyName);
  }

  /**
   * What a TLS listener needs; `cert` and `key` are there while `isReady`. The callback gives what is current whenever it
   * is called. ALPN is the listener's own matter.
   */
  options(): TlsOptions & { SNICallback: SniCallback } {
    const own = this.#loaded.get(everyName);
    return {
      ...(own === undefined ? {} : { cert: own.certificate, key: own.key }),
      minVersion: oldestVersion,
      SNICallback: (name, answer) => {
        try {
          answer(null, this.#choose(name).context);
        } catch (error) {
          answer(error as Error);
        }
      },
    };
  }

  /** All that are served, by name, and those that are ordered. */
  states(): CertificateState[] {
    const orders = this.orders();
    const served = [...this.#loaded].map(([name, { source, validTo, fingerprint }]): CertificateState => {
      const order = source === "acme" ? orders.get(name) : undefined;
      return { name, source, expires: validTo.toISOString(), fingerprint, ...(order && { order }) };
    });
    const awaited = [...orders].filter(([name]) => !this.#loaded.has(name));
    return [...served, ...awaited.map(([name, order]): CertificateState => ({ name, source: "acme", order }))];
  }

  /** How long each is valid, by name. */
  validity(): ReadonlyMap<string, Pick<Loaded, "validFrom" | "validTo" | "fingerprint">> {
    return this.#loaded;
  }

  /** The self-signed one is to be made anew, which `refresh` does. */
  isSelfSignedEnding(now = Date.now()): boolean {
    const own = this.#loaded.get(everyName);
    return own?.source === "self-signed" && own.validTo.getTime() <= now + RENEWAL_TIME;
  }

  /** What is ordered from an authority; undefined where nothing is. */
  get acme(): AcmeSettings | undefined {
    return this.#options.acme;
  }

  /** Files of the configured certificates and keys. */
  files(): string[] {
    return Object.values(this.#options.certificates ?? {}).flatMap(({ certificate, key }) => [certificate, key]);
  }

  /** Forgets keys and certificates; connections that are open go on. */
  close(): void {
    this.#loaded = new Map();
  }

  #warn(pairs: Iterable<Loaded>): void {
    for (const { warnings } of pairs) for (const warning of warnings) this.#options.log.warn(...warning);
  }

  #choose(name: string): Loaded {
    const asked = name.toLowerCase();
    const wildcard = asked.replace(/^[^.]+/, everyName);
    const found = this.#loaded.get(asked) ?? this.#loaded.get(wildcard) ?? this.#loaded.get(everyName);
    if (found === undefined) throw invalid(name || everyName, "no certificate is loaded: the server is not running");
    return found;
  }

  async #readConfigured(certificates = this.#options.certificates): Promise<Read> {
    const loaded = new Map<string, Loaded>();
    const changed: string[] = [];
    const failed: { name: string; error: unknown }[] = [];
    for (const [host, files] of Object.entries(certificates ?? {})) {
      const name = asciiName(host);
      const former = this.#loaded.get(name);
      const own = former?.source === "file" ? former : undefined;
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
      const former = this.#loaded.get(name);
      const own = former?.source === "acme" ? former : undefined;
      // One that is not there yet, or is damaged, is being ordered.
      const pair = await readPair(name, filesOf(folder, name), own, "acme").catch(() => own);
      if (pair !== undefined) loaded.set(name, pair);
      if (pair !== undefined && pair !== own) changed.push(name);
    }
    return { loaded, changed, failed };
  }

  async #selfSigned(): Promise<Loaded> {
    const { directory, log } = this.#options;
    const files = { certificate: join(directory, "self-signed.crt"), key: join(directory, "self-signed.key") };
    const names = this.#options.hosts.map((host) => host.replace(/^\[(.*)\]$/, "$1"));
    const kept = await readKept(files, names);
    if (kept !== undefined) return loadedPair(kept, "self-signed");
    const machine = domainToASCII(hostname());
    const local = ["localhost", "127.0.0.1", "::1", ...(machine === "" ? [] : [machine])];
    // Most starts make no certificate, and the library that does is slow to load.
    const { makeSelfSigned } = await import("./self_signed.ts");
    const pair = await makeSelfSigned([...new Set([...names, ...local])]);
    makePrivateFolder(directory);
    await writeFileAtomic(files.key, pair.key, 0o600);
    await writeFileAtomic(files.certificate, pair.certificate, 0o644);
    log.info("made a self-signed certificate: %s", files.certificate);
    return loadedPair(pair, "self-signed");
  }
}

/** The pair made at an earlier start; undefined when missing, damaged, about to expire, or not made for one of the names. */
async function readKept(files: CertificateFiles, names: readonly string[]): Promise<PemPair | undefined> {
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
