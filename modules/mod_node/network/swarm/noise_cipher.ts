/**
 * The cipher of noise connections. The library makes a key ready anew for each frame, which for small frames costs more
 * than to encrypt them, and writes tags and lengths apart; here a key is made ready once.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto";
import type { ICryptoInterface } from "@libp2p/noise";
import { defaultCrypto } from "@libp2p/noise/crypto";
import { Uint8ArrayList } from "uint8arraylist";

const algorithm = "chacha20-poly1305";
const authTagLength = 16;
const keys = new WeakMap<Uint8Array, KeyObject>();

/** `key` is never changed. */
function madeReady(key: Uint8Array): KeyObject {
  let ready = keys.get(key);
  if (ready === undefined) {
    ready = createSecretKey(key);
    keys.set(key, ready);
  }
  return ready;
}

const piecesOf = (bytes: Uint8Array | Uint8ArrayList): Iterable<Uint8Array> =>
  bytes instanceof Uint8Array ? [bytes] : bytes;

export const noiseCipher: ICryptoInterface = {
  ...defaultCrypto,

  chaCha20Poly1305Encrypt(plaintext, nonce, ad, key) {
    const cipher = createCipheriv(algorithm, madeReady(key), nonce, { authTagLength });
    if (ad.length > 0) cipher.setAAD(ad, { plaintextLength: plaintext.byteLength });
    const output = new Uint8ArrayList();
    for (const piece of piecesOf(plaintext)) output.append(cipher.update(piece));
    cipher.final();
    output.append(cipher.getAuthTag());
    return output;
  },

  /** @throws Error when the bytes were tampered with */
  chaCha20Poly1305Decrypt(ciphertext, nonce, ad, key) {
    const end = ciphertext.byteLength - authTagLength;
    const decipher = createDecipheriv(algorithm, madeReady(key), nonce, { authTagLength });
    if (ad.length > 0) decipher.setAAD(ad, { plaintextLength: end });
    decipher.setAuthTag(ciphertext.subarray(end));
    const output = new Uint8ArrayList();
    const text = ciphertext instanceof Uint8Array ? ciphertext.subarray(0, end) : ciphertext.sublist(0, end);
    for (const piece of piecesOf(text)) output.append(decipher.update(piece));
    decipher.final();
    return output;
  },
};
