/** Names objects, encrypts them if the repository has a key, and checks them when they are read. */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  type ScryptOptions,
  scrypt,
} from "node:crypto";
import type { Encryption } from "./format.ts";

export interface Seal {
  /**
   * Returns the hash that names the content. With a key, others cannot test whether the repository
   * has some content.
   */
  hash(content: Uint8Array): string;
  /** Returns the bytes to store for content under a name. */
  close(name: string, content: Uint8Array): Uint8Array;
  /** Returns the content. @throws Error when it differs from what was stored under the name */
  open(name: string, stored: Buffer): Buffer;
}

export const plainSeal: Seal = {
  hash: (content) => createHash("sha256").update(content).digest("hex"),
  close: (_name, content) => content,
  open: (_name, stored) => stored,
};

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
/** Memory limit for deriving the key. N = 2^15 and r = 8 take 32 MiB. */
const MAX_MEMORY = 64 * 1024 * 1024;
const cost = { N: 2 ** 15, r: 8, p: 1 } as const;
const checkName = "check";
const checkText = Buffer.from("modhost backup");

/**
 * Encrypts with AES-256-GCM. The name is authenticated data, so one object cannot replace another.
 */
function encryptedSeal(keys: Buffer): Seal {
  const key = keys.subarray(0, KEY_BYTES);
  const hashKey = keys.subarray(KEY_BYTES);
  return {
    hash: (content) => createHmac("sha256", hashKey).update(content).digest("hex"),
    close(name, content) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(name));
      const text = [cipher.update(content), cipher.final()];
      return Buffer.concat([nonce, ...text, cipher.getAuthTag()]);
    },
    open(name, stored) {
      if (stored.length < NONCE_BYTES + TAG_BYTES) throw new Error("it is too short");
      const cipher = createDecipheriv("aes-256-gcm", key, stored.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(name))
        .setAuthTag(stored.subarray(-TAG_BYTES));
      return Buffer.concat([cipher.update(stored.subarray(NONCE_BYTES, -TAG_BYTES)), cipher.final()]);
    },
  };
}

/** Creates the seal of a new repository. */
export async function newSeal(secret: Uint8Array): Promise<{ readonly seal: Seal; readonly encryption: Encryption }> {
  const salt = randomBytes(16);
  const seal = encryptedSeal(await derive(secret, salt, cost));
  const check = Buffer.from(seal.close(checkName, checkText)).toString("base64");
  return { seal, encryption: { kdf: "scrypt", ...cost, salt: salt.toString("base64"), check } };
}

/** Returns undefined when the secret is wrong. */
export async function sealOf(secret: Uint8Array, encryption: Encryption): Promise<Seal | undefined> {
  const seal = encryptedSeal(await derive(secret, Buffer.from(encryption.salt, "base64"), encryption));
  try {
    return seal.open(checkName, Buffer.from(encryption.check, "base64")).equals(checkText) ? seal : undefined;
  } catch {
    return undefined;
  }
}

function derive(secret: Uint8Array, salt: Buffer, { N, r, p }: Pick<ScryptOptions, "N" | "r" | "p">): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, 2 * KEY_BYTES, { N, r, p, maxmem: MAX_MEMORY } as ScryptOptions, (error, keys) =>
      error === null ? resolve(keys) : reject(error),
    );
  });
}
