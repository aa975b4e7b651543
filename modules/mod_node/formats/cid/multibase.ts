/** The multibase encodings of go-multibase 0.0.3. */
import { base2 } from "multiformats/bases/base2";
import { base16, base16upper } from "multiformats/bases/base16";
import {
  base32,
  base32hex,
  base32hexpad,
  base32hexpadupper,
  base32hexupper,
  base32pad,
  base32padupper,
  base32upper,
} from "multiformats/bases/base32";
import { base36, base36upper } from "multiformats/bases/base36";
import { base58btc, base58flickr } from "multiformats/bases/base58";
import { base64, base64pad, base64url, base64urlpad } from "multiformats/bases/base64";
import { base256emoji } from "multiformats/bases/base256emoji";
import { identity } from "multiformats/bases/identity";
import type { MultibaseCodec } from "multiformats/bases/interface";
import { failure, NodeError } from "../../util/errors.ts";
import { replaceBaseX } from "./patches/multiformats/base_x.ts";
import { replaceBase32 } from "./patches/multiformats/base32.ts";

replaceBaseX();
replaceBase32();

export type Base = MultibaseCodec<string>;

/** Sorted by prefix character. */
export const bases: readonly Base[] = [
  identity,
  base2,
  base32upper,
  base32padupper,
  base16upper,
  base36upper,
  base64pad,
  base32hexpadupper,
  base64urlpad,
  base32hexupper,
  base58flickr,
  base32,
  base32pad,
  base16,
  base36,
  base64,
  base32hexpad,
  base64url,
  base32hex,
  base58btc,
].sort((one, other) => one.prefix.charCodeAt(0) - other.prefix.charCodeAt(0));

/** The encodings of go-multibase 0.2.0. */
export const laterBases: readonly Base[] = [...bases, base256emoji];

const byName = new Map<string, Base>(
  bases.flatMap((base) => [[base.name, base] as const, [base.prefix, base] as const]),
);
const byPrefix = new Map<string, Base>(bases.map((base) => [base.prefix, base]));

export const multibaseOfPrefix = (prefix: string): Base | undefined => byPrefix.get(prefix);

/**
 * Finds a base by its name or prefix character.
 *
 * @throws NodeError with the error text of go-multibase
 */
export function multibaseNamed(name: string): Base {
  const base = byName.get(name);
  if (base === undefined) throw failure("MULTIBASE_UNKNOWN", { name });
  return base;
}

const laterByName = new Map<string, Base>(
  laterBases.flatMap((base) => [
    [base.name, base],
    [base.prefix, base],
  ]),
);

/**
 * Finds one of `laterBases` by its name or prefix character.
 *
 * @throws NodeError with the error text of go-multibase 0.2.0
 */
export function laterBaseNamed(name: string): Base {
  const base = laterByName.get(name);
  if (base === undefined) throw new NodeError("MULTIBASE_UNKNOWN", `unsupported multibase encoding: ${name}`);
  return base;
}

/** Finds one of `laterBases` by the first character of a text. */
export const laterBaseOf = (text: string): Base | undefined => laterBases.find(({ prefix }) => text.startsWith(prefix));

export { base32, base58btc };
