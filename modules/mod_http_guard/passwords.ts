/**
 * Stored passwords in the PHC string format: `$scrypt$ln=15,r=8,p=3$SALT$HASH`, with salt and hash
 * in base64 without padding.
 */
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";

/** Parameters of RFC 7914; `ln` is the logarithm of N. */
export interface Cost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

export interface StoredPassword extends Cost {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** The recommendation of OWASP: 32 MiB, about a tenth of a second. */
const COST: Cost = { ln: 15, r: 8, p: 3 };
const HASH_BYTES = 32;
/**
 * Upper bounds for one check. The file of users contains the parameters, which must not exceed
 * these bounds.
 */
const MAX_MEMORY = 256 * 1024 * 1024;
const MAX_PARALLEL = 16;

/** Returns the text to store for a password. */
export async function keepPassword(password: string, cost: Cost = COST): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, { ...cost, salt, hash: Buffer.alloc(HASH_BYTES) });
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(hash)}`;
}

/** Returns undefined for a text in another format, and for parameters that exceed the bounds. */
export function readStored(text: string): StoredPassword | undefined {
  const found = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/-]{11,86})\$([\w+/-]{22,86})$/.exec(text);
  if (found === null) return undefined;
  const [ln, r, p] = found.slice(1, 4).map(Number) as [number, number, number];
  if (ln < 1 || r < 1 || p < 1 || p > MAX_PARALLEL || 128 * 2 ** ln * r > MAX_MEMORY) return undefined;
  return { ln, r, p, salt: Buffer.from(found[4] as string, "base64"), hash: Buffer.from(found[5] as string, "base64") };
}

/** Takes the same time for a wrong password as for the right one. */
export async function isPassword(stored: StoredPassword, password: string): Promise<boolean> {
  return timingSafeEqual(await derive(password, stored), stored.hash);
}

/**
 * Returns a password that nobody has. It is checked for unknown users, so that the time does not
 * reveal which users exist.
 */
export function nobodysPassword(): StoredPassword {
  return { ...COST, salt: randomBytes(16), hash: randomBytes(HASH_BYTES) };
}

function derive(password: string, { ln, r, p, salt, hash }: StoredPassword): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const settings = { N: 2 ** ln, r, p, maxmem: 2 * MAX_MEMORY };
  scrypt(password.normalize("NFC"), salt, hash.length, settings, (error, key) =>
    error === null ? resolve(key) : reject(error),
  );
  return promise;
}

function base64(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}
