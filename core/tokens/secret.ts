/** The secret of a token: `mht_<id>_<random>`. */
import { createHash, randomInt } from "node:crypto";

const idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZ${idAlphabet}`;

const ID_LENGTH = 10;
/** 62 ** 32 is more than 2 ** 190. */
const RANDOM_LENGTH = 32;

const secretPattern = new RegExp(`^mht_([a-z0-9]{${ID_LENGTH}})_[A-Za-z0-9]{${RANDOM_LENGTH}}$`);
/** A text with this prefix is meant as a token of the server, even if the rest is wrong. */
const PREFIX = "mht_";

export function isMeantAsToken(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Returns the id in a secret; undefined for a text that is not a secret. */
export function idOf(secret: string): string | undefined {
  return secretPattern.exec(secret)?.[1];
}

export function makeSecret(): { readonly id: string; readonly secret: string } {
  const id = randomText(idAlphabet, ID_LENGTH);
  return { id, secret: `${PREFIX}${id}_${randomText(alphabet, RANDOM_LENGTH)}` };
}

/**
 * Returns the digest of a secret, which is stored instead of it. A slow hash would protect
 * guessable passwords, but a secret has 190 random bits: nobody can guess it, and each request
 * would pay for the slow hash.
 */
export function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

function randomText(from: string, length: number): string {
  return Array.from({ length }, () => from[randomInt(from.length)]).join("");
}
