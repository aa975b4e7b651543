/** Reads and checks certificates with their keys. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContext } from "node:tls";
import { domainToASCII } from "node:url";
import type { CertificateState } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { PemPair } from "./self_signed.ts";

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A pair that can be used. */
export interface Loaded extends PemPair {
  readonly context: SecureContext;
  readonly source: CertificateState["source"];
  readonly validFrom: Date;
  readonly validTo: Date;
  readonly fingerprint: string;
  /** Warnings about it for the operator. */
  readonly warnings: readonly (readonly [format: string, ...values: unknown[]])[];
}

export const oldestVersion = "TLSv1.2";
export const everyName = "*";

/**
 * Reads the pair of a host.
 * @param previous the previous pair, which is returned if the files have not changed
 * @throws {ModhostError} TLS_INVALID naming the host and the file
 */
export async function readPair(
  host: string,
  files: CertificateFiles,
  previous?: Loaded,
  source: Loaded["source"] = "file",
): Promise<Loaded> {
  const [certificate, key] = await Promise.all([readPem(host, files.certificate), readPem(host, files.key)]);
  if (previous?.certificate === certificate && previous.key === key) return previous;
  const parsed = attempt(host, files.certificate, () => new X509Certificate(certificate));
  if (/^-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(key)) {
    const remedy = "remove it with openssl pkey -in KEY -out PLAIN, and let only the server read that";
    throw invalid(host, `the key in ${files.key} has a passphrase, which the server cannot enter: ${remedy}`);
  }
  const privateKey = attempt(host, files.key, () => createPrivateKey(key));
  if (!parsed.checkPrivateKey(privateKey)) {
    throw invalid(host, `the key in ${files.key} does not belong to the certificate in ${files.certificate}`);
  }
  const loaded = attempt(host, files.certificate, () => loadedPair({ certificate, key }, source, parsed));
  return { ...loaded, warnings: warningsOf(host, files, parsed) };
}

export function loadedPair(
  { certificate, key }: PemPair,
  source: Loaded["source"],
  parsed = new X509Certificate(certificate),
): Loaded {
  const { validFromDate: validFrom, validToDate: validTo, fingerprint256: fingerprint } = parsed;
  const context = createSecureContext({ cert: certificate, key, minVersion: oldestVersion });
  return { certificate, key, context, source, validFrom, validTo, fingerprint, warnings: [] };
}

export function invalid(host: string, reason: string): ModhostError {
  return new ModhostError("TLS_INVALID", { host, reason });
}

/** Returns the name as clients send it: in ASCII, and without a final dot. */
export function asciiName(name: string): string {
  return name === everyName
    ? name
    : name.replace(/^(\*\.)?(.*?)\.?$/, (_, star = "", rest) => star + domainToASCII(rest));
}

function warningsOf(host: string, files: CertificateFiles, parsed: X509Certificate): Loaded["warnings"] {
  const warnings: (readonly [string, ...unknown[]])[] = [];
  if (parsed.validToDate.getTime() < Date.now()) {
    warnings.push(["the certificate for %s in %s expired on %s", host, files.certificate, parsed.validTo]);
  }
  const sample = asciiName(host).replace(/^\*/, "any");
  if (host !== everyName && parsed.checkHost(sample) === undefined) {
    warnings.push(["the certificate in %s does not cover %s: browsers will refuse it", files.certificate, host]);
  }
  return warnings;
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
