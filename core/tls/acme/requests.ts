/**
 * Creates the signed objects that ACME needs: certificate requests, the certificates of
 * tls-alpn-01, and ids for renewals.
 */
import "reflect-metadata";
import { createHash, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  Extension,
  PemConverter,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { PemPair } from "../self_signed.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const HOUR_MS = 3_600_000;

/** id-pe-acmeIdentifier, RFC 8737. */
const ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31";

/** Creates a key (PEM), and a certificate request for it (DER). */
export async function requestFor(name: string): Promise<{ key: string; csr: Buffer }> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const request = await Pkcs10CertificateRequestGenerator.create(
    { keys, signingAlgorithm: algorithm, extensions: [namesOf(name)] },
    webcrypto,
  );
  return { key: await pemOf(keys.privateKey), csr: Buffer.from(request.rawData) };
}

/** Creates the certificate that only connections of the authority get. */
export async function alpnCertificate(name: string, keyAuthorization: string): Promise<PemPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const digest = createHash("sha256").update(keyAuthorization).digest();
  // This is an OCTET STRING of 32 bytes.
  const value = Buffer.concat([Buffer.from([0x04, digest.length]), digest]);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      keys,
      signingAlgorithm: algorithm,
      name: [{ CN: [name.slice(0, 64)] }],
      notBefore: new Date(Date.now() - HOUR_MS),
      notAfter: new Date(Date.now() + 24 * HOUR_MS),
      extensions: [namesOf(name), new Extension(ACME_IDENTIFIER, true, value)],
    },
    webcrypto,
  );
  return { certificate: `${certificate.toString("pem")}\n`, key: await pemOf(keys.privateKey) };
}

/**
 * Returns the id of a certificate in RFC 9773; undefined if it does not name the key that signed
 * it.
 */
export function renewalId(certificate: string): string | undefined {
  const parsed = new X509Certificate(certificate);
  const signer = parsed.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  if (signer === undefined) return undefined;
  let serial = parsed.serialNumber;
  if (serial.length % 2 === 1) serial = `0${serial}`;
  // A serial number in a certificate is signed, so a zero byte precedes a first bit of 1.
  if (Number.parseInt(serial.slice(0, 2), 16) >= 0x80) serial = `00${serial}`;
  const text = (hex: string) => Buffer.from(hex, "hex").toString("base64url");
  return `${text(signer)}.${text(serial)}`;
}

function namesOf(name: string): SubjectAlternativeNameExtension {
  return new SubjectAlternativeNameExtension([{ type: "dns", value: name }]);
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return `${PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY")}\n`;
}
