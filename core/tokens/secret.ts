/** The secret of a token: `mht_<id>_<random>`. */
import { createHash, randomInt } from "node:crypto";

const idAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
const alphabet = `ABCDEFGHIJKLMNOPQRSTUVWXYZ${idAlphabet}`;

const ID_LENGTH = 10;
/** 62 ** 32 is more than 2 ** 190. */
const RANDOM_LENGTH = 32;

const secretPattern = new RegExp(`^mht_([a-z0-9]{${ID_LENGTH}})_[A-Za-z0-9]{${RANDOM_LENGTH}}$`);
/** What begins like one is meant as a token of the server, however wrong the rest. */
const PREFIX = "mht_";

export function isMeantAsToken(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** The id in a secret; undefined for what no secret looks like. */
export function idOf(secret: string): string | undefined {
  return secretPattern.exec(secret)?.[1];
}

/** For messages and records: a secret may stand where something else is asked for. */
export function withoutSecrets(text: string): string {
  return text.replace(/mht_\w*/g, "mht_...");
}

export function makeSecret(): { readonly id: string; readonly secret: string } {
  const id = randomText(idAlphabet, ID_LENGTH);
  return { id, secret: `${PREFIX}${id}_${randomText(alphabet, RANDOM_LENGTH)}` };
}

/**
 * What is kept of a secret. A slow hash protects what people choose, which can be guessed; this is random, with 190 bits:
 * nobody finds it by trying, however fast, and each request pays for the hash.
 */
export function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

function randomText(from: string, length: number): string {
  return Array.from({ length }, () => from[randomInt(from.length)]).join("");
}
