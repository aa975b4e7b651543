import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { createSecureContext, type SecureContext, type TlsOptions } from "node:tls";
import { domainToASCII } from "node:url";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { PemPair } from "./self_signed.ts";

/** What is asked of a logger here. */
export interface TlsLog {
  info(format: string, ...values: unknown[]): void;
  warn(format: string, ...values: unknown[]): void;
}

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

export interface CertificatesOptions {
  /** Folder of the self-signed certificate; made when missing. */
  readonly directory: string;
  /** Absolute paths of PEM files by host name, "*.example.org" or "*". */
  readonly certificates: Readonly<Record<string, CertificateFiles>> | undefined;
  /** Names that the self-signed certificate covers beside those of this machine. */
  readonly hosts: readonly string[];
  readonly log: TlsLog;
}

interface Loaded extends PemPair {
  readonly context: SecureContext;
}

type SniCallback = NonNullable<TlsOptions["SNICallback"]>;

const oldestVersion = "TLSv1.2";
const everyName = "*";

/** The self-signed certificate is made anew this long before it expires, milliseconds. */
const RENEWAL_TIME = 30 * 86_400_000;

/**
 * The certificates of the server. A client gets the one configured for the name it asks for (SNI), else the one of the
 * wildcard above that name, else the one of "*", else a self-signed one, made at first start and kept.
 */
export class Certificates {
  #options: CertificatesOptions;
  #loaded: ReadonlyMap<string, Loaded> = new Map();

  constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  /**
   * Reads all certificates; where none of "*" is configured makes the self-signed one, unless there is to be none.
   * @throws {ModhostError} TLS_INVALID naming the host and the file
   */
  async prepare({ selfSigned = true } = {}): Promise<void> {
    const loaded = await this.#readConfigured();
    if (!loaded.has(everyName) && selfSigned) loaded.set(everyName, await this.#selfSigned());
    this.#loaded = loaded;
  }

  /**
   * Reads the configured certificates and changes nothing.
   * @throws {ModhostError} TLS_INVALID
   */
  async verify(): Promise<void> {
    await this.#readConfigured();
  }

  /**
   * Reads the files again. New connections get the new certificates; when one is wrong all former ones stay.
   * A listener's own `cert` and `key` (for clients that name no host) follow by `setSecureContext(options())`.
   * @throws {ModhostError} TLS_INVALID
   */
  reload(): Promise<void> {
    return this.prepare();
  }

  /**
   * Other certificates from now on; when one of them is wrong, nothing changes. The returned function brings the former
   * ones back.
   * @throws {ModhostError} TLS_INVALID
   */
  async configure(options: Omit<CertificatesOptions, "log">, how: { selfSigned?: boolean } = {}): Promise<() => void> {
    const [former, loaded] = [this.#options, this.#loaded];
    const restore = () => {
      this.#options = former;
      this.#loaded = loaded;
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

  /** What a TLS listener needs; valid while `isReady`. ALPN is the listener's own matter. */
  options(): TlsOptions & { SNICallback: SniCallback } {
    const { certificate, key } = this.#choose("");
    return {
      cert: certificate,
      key,
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

  /** Forgets keys and certificates; connections that are open go on. */
  close(): void {
    this.#loaded = new Map();
  }

  #choose(name: string): Loaded {
    const asked = name.toLowerCase();
    const wildcard = asked.replace(/^[^.]+/, everyName);
    const found = this.#loaded.get(asked) ?? this.#loaded.get(wildcard) ?? this.#loaded.get(everyName);
    if (found === undefined) throw invalid(name || everyName, "no certificate is loaded: the server is not running");
    return found;
  }

  async #readConfigured(): Promise<Map<string, Loaded>> {
    const loaded = new Map<string, Loaded>();
    for (const [name, files] of Object.entries(this.#options.certificates ?? {})) {
      loaded.set(asciiName(name), await this.#configured(name, files));
    }
    return loaded;
  }

  async #configured(host: string, files: CertificateFiles): Promise<Loaded> {
    const [certificate, key] = await Promise.all([readPem(host, files.certificate), readPem(host, files.key)]);
    const parsed = attempt(host, files.certificate, () => new X509Certificate(certificate));
    const privateKey = attempt(host, files.key, () => createPrivateKey(key));
    if (!parsed.checkPrivateKey(privateKey)) {
      throw invalid(host, `the key in ${files.key} does not belong to the certificate in ${files.certificate}`);
    }
    const context = attempt(host, files.certificate, () => secureContext({ certificate, key }));
    if (parsed.validToDate.getTime() < Date.now()) {
      this.#options.log.warn("the certificate for %s in %s expired on %s", host, files.certificate, parsed.validTo);
    }
    const sample = asciiName(host).replace(/^\*/, "any");
    if (host !== everyName && parsed.checkHost(sample) === undefined) {
      this.#options.log.warn(
        "the certificate in %s does not cover %s: browsers will refuse it",
        files.certificate,
        host,
      );
    }
    return { certificate, key, context };
  }

  async #selfSigned(): Promise<Loaded> {
    const { directory, log } = this.#options;
    const files = { certificate: join(directory, "self-signed.crt"), key: join(directory, "self-signed.key") };
    const names = this.#options.hosts.map((host) => host.replace(/^\[(.*)\]$/, "$1"));
    const kept = await readKept(files, names);
    if (kept !== undefined) return { ...kept, context: secureContext(kept) };
    const machine = domainToASCII(hostname());
    const local = ["localhost", "127.0.0.1", "::1", ...(machine === "" ? [] : [machine])];
    // Most starts make no certificate, and the library that does is slow to load.
    const { makeSelfSigned } = await import("./self_signed.ts");
    const pair = await makeSelfSigned([...new Set([...names, ...local])]);
    await mkdir(directory, { recursive: true });
    await writeWhole(files.key, pair.key, 0o600);
    await writeWhole(files.certificate, pair.certificate, 0o644);
    log.info("made a self-signed certificate: %s", files.certificate);
    return { ...pair, context: secureContext(pair) };
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

/** A reader sees the old file or the new one, never a part; the mode holds from the first byte on. */
async function writeWhole(path: string, content: string, mode: number): Promise<void> {
  const partial = `${path}.${process.pid}.new`;
  const file = await open(partial, "w", mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
}

async function readPem(host: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw invalid(host, `${path} cannot be read: ${reasonOf(error)}`);
  }
}

function attempt<T>(host: string, path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw invalid(host, `${path} is not a usable PEM file: ${reasonOf(error)}`);
  }
}

function secureContext({ certificate, key }: PemPair): SecureContext {
  return createSecureContext({ cert: certificate, key, minVersion: oldestVersion });
}

function invalid(host: string, reason: string): ModhostError {
  return new ModhostError("TLS_INVALID", { host, reason });
}

function asciiName(name: string): string {
  return name === everyName ? name : name.replace(/^(\*\.)?(.*)$/, (_, star = "", rest) => star + domainToASCII(rest));
}
