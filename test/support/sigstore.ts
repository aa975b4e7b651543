/**
 * A small Sigstore for tests: its own certificate authority, certificate log and transparency log.
 * It writes the cache of a client that trusts them and nothing else, so that no request leaves the
 * machine.
 */
import "reflect-metadata";
import { createHash, createSign, generateKeyPairSync, type KeyObject, sign, type webcrypto } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { X509Certificate as ParsedCertificate } from "@sigstore/core";

/** The name of the folder in which clients store the metadata of Sigstore's public instance. */
const CACHE_FOLDER = "tuf-repo-cdn.sigstore.dev";
/** All certificates are valid at this time, at which everything is logged. */
const LOGGED = Date.UTC(2020, 0, 2);
const START = new Date(Date.UTC(2019, 0));
const END = new Date(Date.UTC(2091, 0));
const SCT_LIST = "1.3.6.1.4.1.11129.2.4.2";
const SOURCE_REPOSITORY = "1.3.6.1.4.1.57264.1.12";
const OCTET_STRING = 0x04;
const UTF8_STRING = 0x0c;
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

export interface Statement {
  readonly name: string;
  readonly version: string;
  /** Checksum of the archive, as npm writes it. */
  readonly integrity: string;
  readonly predicateType?: string;
  /** The repository in the certificate. */
  readonly repository?: string;
  /** The repository that the statement names. */
  readonly stated?: string;
}

export class TestSigstore {
  readonly #transparencyLog = new LogKey();
  readonly #certificateLog = new LogKey();
  readonly #authority: webcrypto.CryptoKeyPair;
  readonly #certificate: X509Certificate;

  private constructor(authority: webcrypto.CryptoKeyPair, certificate: X509Certificate) {
    this.#authority = authority;
    this.#certificate = certificate;
  }

  static async make(): Promise<TestSigstore> {
    const keys = await makeKeys();
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: "01",
      name: "CN=test authority",
      notBefore: START,
      notAfter: END,
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new TestSigstore(keys, certificate);
  }

  /** Writes the cache of a client that trusts this instance. */
  async trustIn(folder: string): Promise<void> {
    const log = (key: LogKey) => ({
      baseUrl: "https://log.invalid",
      hashAlgorithm: "SHA2_256",
      publicKey: {
        rawBytes: key.der.toString("base64"),
        keyDetails: "PKIX_ECDSA_P256_SHA_256",
        validFor: { start: START.toISOString() },
      },
      logId: { keyId: key.id.toString("base64") },
    });
    const root = JSON.stringify({
      mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
      tlogs: [log(this.#transparencyLog)],
      ctlogs: [log(this.#certificateLog)],
      certificateAuthorities: [
        {
          subject: { organization: "test", commonName: "test" },
          uri: "https://authority.invalid",
          certChain: { certificates: [{ rawBytes: base64(this.#certificate.rawData) }] },
          validFor: { start: START.toISOString() },
        },
      ],
      timestampAuthorities: [],
    });
    const cache = join(folder, CACHE_FOLDER);
    await mkdir(join(cache, "targets"), { recursive: true });
    await writeFile(join(cache, "targets/trusted_root.json"), root);
    for (const [name, text] of Object.entries(updateMetadata(root))) await writeFile(join(cache, name), text);
  }

  /** Returns a response of a registry with one attestation. */
  async attest(
    statement: Statement,
  ): Promise<{ attestations: { predicateType: string; bundle: AttestationBundle }[] }> {
    const { name, version, integrity, repository = "https://git.example/alice/shop", stated = repository } = statement;
    const { predicateType = "https://slsa.dev/provenance/v1" } = statement;
    const keys = await makeKeys();
    const certificate = await this.#issue(keys.publicKey, repository);
    const payload = JSON.stringify({
      _type: "https://in-toto.io/Statement/v1",
      subject: [
        {
          name: `pkg:npm/${name}@${version}`,
          digest: { sha512: Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex") },
        },
      ],
      predicateType,
      predicate: { buildDefinition: { externalParameters: { workflow: { repository: stated } } } },
    });
    const payloadType = "application/vnd.in-toto+json";
    const encoded = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} ${payload}`;
    const raw = await crypto.subtle.sign(algorithm, keys.privateKey, Buffer.from(encoded));
    const sig = derSignature(Buffer.from(raw)).toString("base64");
    const bundle = {
      mediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
      verificationMaterial: {
        x509CertificateChain: { certificates: [{ rawBytes: base64(certificate.rawData) }] },
        tlogEntries: [this.#logged(sig, payload)],
        timestampVerificationData: { rfc3161Timestamps: [] },
      },
      dsseEnvelope: { payload: base64(Buffer.from(payload)), payloadType, signatures: [{ keyid: "", sig }] },
    };
    return { attestations: [{ predicateType, bundle }] };
  }

  /** Issues a certificate for a builder, with the signature of the certificate log. */
  async #issue(publicKey: webcrypto.CryptoKey, repository: string): Promise<X509Certificate> {
    const make = async (more: Extension[]) =>
      await X509CertificateGenerator.create({
        serialNumber: "02",
        subject: "",
        issuer: this.#certificate.subject,
        notBefore: new Date(LOGGED - 60_000),
        notAfter: new Date(LOGGED + 600_000),
        signingAlgorithm: algorithm,
        publicKey,
        signingKey: this.#authority.privateKey,
        extensions: [
          new SubjectAlternativeNameExtension(
            [{ type: "url", value: `${repository}/build.yml@refs/heads/main` }],
            true,
          ),
          await AuthorityKeyIdentifierExtension.create(this.#authority.publicKey),
          new Extension(SOURCE_REPOSITORY, false, der(UTF8_STRING, Buffer.from(repository))),
          ...more,
        ],
      });
    const unlogged = ParsedCertificate.parse(Buffer.from((await make([])).rawData)).tbsCertificate.toDER();
    const issuer = createHash("sha256").update(Buffer.from(this.#certificate.publicKey.rawData)).digest();
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(LOGGED));
    const entry = Buffer.concat([issuer, sized(unlogged, 3)]);
    const signature = this.#certificateLog.sign(
      Buffer.concat([Buffer.from([0, 0]), time, Buffer.from([0, 1]), entry, Buffer.alloc(2)]),
    );
    const hashAndAlgorithm = Buffer.from([4, 3]);
    const timestamp = Buffer.concat([
      Buffer.from([0]),
      this.#certificateLog.id,
      time,
      Buffer.alloc(2),
      hashAndAlgorithm,
      sized(signature, 2),
    ]);
    return await make([new Extension(SCT_LIST, false, der(OCTET_STRING, sized(sized(timestamp, 2), 2)))]);
  }

  /** Returns the entry of the transparency log for a signature. */
  #logged(signature: string, payload: string) {
    const value = createHash("sha256").update(payload).digest("hex");
    const entry = {
      apiVersion: "0.0.1",
      kind: "dsse",
      spec: { payloadHash: { algorithm: "sha256", value }, signatures: [{ signature }] },
    };
    const body = base64(Buffer.from(JSON.stringify(entry)));
    const integratedTime = LOGGED / 1000;
    const promised = { body, integratedTime, logIndex: 1, logID: this.#transparencyLog.id.toString("hex") };
    return {
      logIndex: "1",
      logId: { keyId: this.#transparencyLog.id.toString("base64") },
      kindVersion: { kind: "dsse", version: "0.0.1" },
      integratedTime: String(integratedTime),
      inclusionPromise: {
        signedEntryTimestamp: base64(this.#transparencyLog.sign(Buffer.from(canonical(promised)))),
      },
      canonicalizedBody: body,
    };
  }
}

export interface AttestationBundle {
  readonly mediaType: string;
  readonly verificationMaterial: {
    readonly x509CertificateChain: { readonly certificates: readonly { readonly rawBytes: string }[] };
    readonly tlogEntries: { inclusionPromise: { signedEntryTimestamp: string } }[];
    readonly timestampVerificationData: unknown;
  };
  readonly dsseEnvelope: {
    payload: string;
    readonly payloadType: string;
    signatures: { keyid: string; sig: string }[];
  };
}

class LogKey {
  readonly der: Buffer;
  readonly id: Buffer;
  readonly #privateKey: KeyObject;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.der = publicKey.export({ type: "spki", format: "der" });
    this.id = createHash("sha256").update(this.der).digest();
    this.#privateKey = privateKey;
  }

  sign(data: Buffer): Buffer {
    return createSign("SHA256").update(data).sign(this.#privateKey);
  }
}

/** Makes the metadata of The Update Framework for one target, signed with one key. */
function updateMetadata(target: string): Record<string, string> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const jwk = publicKey.export({ format: "jwk" });
  const keyid = "test";
  const keyval = { public: Buffer.from(jwk.x ?? "", "base64url").toString("hex") };
  const role = { keyids: [keyid], threshold: 1 };
  const signed = (_type: string, fields: object) => {
    const content = {
      _type,
      spec_version: "1.0.31",
      version: 1,
      expires: END.toISOString().replace(".000", ""),
      ...fields,
    };
    const sig = sign(null, Buffer.from(canonical(content)), privateKey).toString("hex");
    return JSON.stringify({ signed: content, signatures: [{ keyid, sig }] });
  };
  const hashes = { sha256: createHash("sha256").update(target).digest("hex") };
  return {
    "root.json": signed("root", {
      consistent_snapshot: true,
      keys: { [keyid]: { keytype: "ed25519", scheme: "ed25519", keyval } },
      roles: { root: role, timestamp: role, snapshot: role, targets: role },
    }),
    "timestamp.json": signed("timestamp", { meta: { "snapshot.json": { version: 1 } } }),
    "snapshot.json": signed("snapshot", { meta: { "targets.json": { version: 1 } } }),
    "targets.json": signed("targets", { targets: { "trusted_root.json": { length: target.length, hashes } } }),
  };
}

const makeKeys = async () =>
  (await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as webcrypto.CryptoKeyPair;

const base64 = (bytes: ArrayBuffer | Buffer): string => Buffer.from(bytes as ArrayBuffer).toString("base64");

/** JSON with sorted names and without spaces. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}

/** Bytes after their length, which is written in `width` bytes. */
function sized(bytes: Buffer, width: number): Buffer {
  const length = Buffer.alloc(width);
  length.writeUIntBE(bytes.length, 0, width);
  return Buffer.concat([length, bytes]);
}

/** A value of ASN.1 in DER, of up to 64 KiB. */
function der(tag: number, bytes: Buffer): Buffer {
  const { length } = bytes;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), bytes]);
}

/** The signature of the Web Crypto API, which is two numbers of 32 bytes, in DER. */
function derSignature(raw: Buffer): Buffer {
  const number = (bytes: Buffer) => {
    const start = bytes.findIndex((byte) => byte !== 0);
    const short = bytes.subarray(start);
    return der(0x02, (short[0] as number) < 0x80 ? short : Buffer.concat([Buffer.alloc(1), short]));
  };
  return der(0x30, Buffer.concat([number(raw.subarray(0, 32)), number(raw.subarray(32))]));
}
