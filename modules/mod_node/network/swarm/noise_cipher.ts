/**
 * The cipher of noise connections, which the library uses as its `crypto`. The library would
 * prepare the key again for each frame, which costs more than encrypting a small frame; here each
 * key is prepared once.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto";
import type { ICryptoInterface } from "@libp2p/noise";
import { defaultCrypto } from "@libp2p/noise/crypto";
import { Uint8ArrayList } from "uint8arraylist";

const ALGORITHM = "chacha20-poly1305";
const AUTH_TAG_SIZE = 16;
const keys = new WeakMap<Uint8Array, KeyObject>();

/** @param key bytes that never change */
function prepared(key: Uint8Array): KeyObject {
  let ready = keys.get(key);
  if (ready === undefined) {
    ready = createSecretKey(key);
    keys.set(key, ready);
  }
  return ready;
}

const chunksOf = (bytes: Uint8Array | Uint8ArrayList): Iterable<Uint8Array> =>
  bytes instanceof Uint8Array ? [bytes] : bytes;

export const noiseCipher: ICryptoInterface = {
  ...defaultCrypto,

  chaCha20Poly1305Encrypt(plaintext, nonce, ad, key) {
    const cipher = createCipheriv(ALGORITHM, prepared(key), nonce, { authTagLength: AUTH_TAG_SIZE });
    if (ad.length > 0) cipher.setAAD(ad, { plaintextLength: plaintext.byteLength });
    const output = new Uint8ArrayList();
    for (const chunk of chunksOf(plaintext)) output.append(cipher.update(chunk));
    cipher.final();
    output.append(cipher.getAuthTag());
    return output;
  },

  /** @throws Error if the tag does not match */
  chaCha20Poly1305Decrypt(ciphertext, nonce, ad, key) {
    const end = ciphertext.byteLength - AUTH_TAG_SIZE;
    const decipher = createDecipheriv(ALGORITHM, prepared(key), nonce, { authTagLength: AUTH_TAG_SIZE });
    if (ad.length > 0) decipher.setAAD(ad, { plaintextLength: end });
    decipher.setAuthTag(ciphertext.subarray(end));
    const output = new Uint8ArrayList();
    const text = ciphertext instanceof Uint8Array ? ciphertext.subarray(0, end) : ciphertext.sublist(0, end);
    for (const chunk of chunksOf(text)) output.append(decipher.update(chunk));
    decipher.final();
    return output;
  },
};
