/**
 * Keys that all hosts share. They are stored in the shared metadata, each encrypted with a secret
 * that the operator gives to every host.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { failure } from "../../util/errors.ts";
import { keyFile, keyNameOf, requireKeyName } from "../keystore/key_files.ts";
import type { KeyHolder } from "../keystore/key_holder.ts";
import { prefixedStore } from "../metadata/prefixed_store.ts";
import type { MetadataStore } from "../metadata/store.ts";

/** Metadata key of the salt and of a sealed text that verifies the secret. */
export const headerKey = "key-secret";
export const keysPrefix = "keys/";
/** Lengths in bytes. */
const SALT = 16;
const NONCE = 12;
const TAG = 16;
const KEY = 32;
/** Minimum length of a secret in characters. */
const MIN_SECRET = 16;
const CIPHER = "aes-256-gcm";
/** Deriving a key takes 64 MiB and a tenth of a second. */
const COST = { N: 2 ** 16, r: 8, p: 1, maxmem: 2 ** 27 };
const CHECK = "check";

const derive = promisify<string, Uint8Array, number, typeof COST, Buffer>(scrypt);

/**
 * Encrypts bytes for one context; decrypting them in another context fails. Returns nonce, tag and
 * encrypted bytes.
 */
function seal(key: Uint8Array, context: string, bytes: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/**
 * Decrypts bytes.
 * @throws Error when the key, the context or the bytes do not match
 */
function unseal(key: Uint8Array, context: string, sealed: Uint8Array): Uint8Array {
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE), { authTagLength: TAG });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
}

export class SharedKeys implements KeyHolder {
  readonly #keys: MetadataStore;
  readonly #secret: Uint8Array;

  private constructor(metadata: MetadataStore, secret: Uint8Array) {
    this.#keys = prefixedStore(metadata, keysPrefix);
    this.#secret = secret;
  }

  /**
   * Opens the shared keys. The secret of the first host becomes the secret of the store.
   *
   * @throws NodeError KEYS_SECRET_SHORT, KEYS_SECRET_WRONG
   */
  static async open(metadata: MetadataStore, secret: string): Promise<SharedKeys> {
    if (secret.length < MIN_SECRET) throw failure("KEYS_SECRET_SHORT", { least: MIN_SECRET });
    for (;;) {
      const header = await metadata.get(headerKey);
      const salt = header?.subarray(0, SALT) ?? randomBytes(SALT);
      const key = await derive(secret, salt, KEY, COST);
      if (header !== undefined) {
        requireSecret(key, header.subarray(SALT));
        return new SharedKeys(metadata, key);
      }
      const made = Buffer.concat([salt, seal(key, headerKey, Buffer.from(CHECK))]);
      await metadata.compareAndSet(headerKey, undefined, made);
    }
  }

  async names(): Promise<readonly string[]> {
    const files = (await Array.fromAsync(this.#keys.range())).map(([file]) => file);
    return files.map(keyNameOf).filter((name) => name !== undefined);
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const sealed = await this.#keys.get(keyFile(name));
    try {
      return sealed && unseal(this.#secret, name, sealed);
    } catch (error) {
      throw failure(
        "KEY_UNREADABLE",
        { reason: `${this.describe(name)} cannot be read: ${(error as Error).message}` },
        error,
      );
    }
  }

  describe(name: string): string {
    return `the shared key ${name}`;
  }

  requireName(name: string): void {
    requireKeyName(name, keyFile(name));
  }

  add(name: string, bytes: Uint8Array): Promise<boolean> {
    return this.#keys.compareAndSet(keyFile(name), undefined, seal(this.#secret, name, bytes));
  }

  rename(was: string, now: string, force: boolean): Promise<"renamed" | "missing" | "taken"> {
    return this.#keys.transaction((writer) => {
      const sealed = writer.get(keyFile(was));
      if (sealed === undefined) return "missing";
      if (!force && writer.has(keyFile(now))) return "taken";
      writer.put(keyFile(now), seal(this.#secret, now, unseal(this.#secret, was, sealed)));
      writer.delete(keyFile(was));
      return "renamed";
    });
  }

  remove(name: string): Promise<boolean> {
    return this.#keys.transaction((writer) => writer.delete(keyFile(name)));
  }
}

function requireSecret(key: Uint8Array, sealed: Uint8Array): void {
  try {
    unseal(key, headerKey, sealed);
  } catch (error) {
    throw failure("KEYS_SECRET_WRONG", undefined, error);
  }
}
