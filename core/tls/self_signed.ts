// The certificate library uses this polyfill, so it must be loaded first.
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

export interface PemPair {
  readonly certificate: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;

/** The lifetime of a self-signed certificate in milliseconds: ten years less a day. */
export const lifetime = 3_650 * DAY_MS - DAY_MS;

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/**
 * Creates a key (ECDSA, P-256) and a self-signed certificate for a TLS server.
 * @param names host names and IP addresses; the first one is the subject's common name
 * @param now the certificate is valid from an hour before, since clocks differ
 */
export async function makeSelfSigned(names: readonly string[], now: Date = new Date()): Promise<PemPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      keys,
      signingAlgorithm: algorithm,
      name: [{ CN: [(names[0] ?? "localhost").slice(0, 64)] }],
      notBefore: new Date(now.getTime() - DAY_MS / 24),
      notAfter: new Date(now.getTime() + lifetime),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        new SubjectAlternativeNameExtension(
          names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value }) as const),
        ),
      ],
    },
    webcrypto,
  );
  const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { certificate: `${certificate.toString("pem")}\n`, key: `${PemConverter.encode(key, "PRIVATE KEY")}\n` };
}
