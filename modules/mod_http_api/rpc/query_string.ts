/**
 * Parses query strings as Go does: up to 1.16, where `;` separates pairs like `&`, or later, where
 * it is invalid.
 */
import { isUtf8 } from "node:buffer";
import { byteText, textBytes } from "modhost/node";

/** Text, or bytes that are not valid UTF-8. */
export type Value = string | Uint8Array;

export const textOf = (value: Value): string => (typeof value === "string" ? value : byteText(value));

export const bytesOf = (value: Value): Uint8Array => (typeof value === "string" ? textBytes(value) : value);

/** Decodes bytes to text if they are valid UTF-8. */
export const fromBytes = (bytes: Buffer): Value => (isUtf8(bytes) ? bytes.toString("utf8") : bytes);

/** Percent-decodes text, with `+` as space. Returns undefined for a malformed escape. */
export function unescapeQuery(raw: string): Value | undefined {
  const spaced = raw.includes("+") ? raw.replaceAll("+", " ") : raw;
  if (!spaced.includes("%")) return spaced;
  if (/%(?![0-9a-f]{2})/i.test(spaced)) return undefined;
  try {
    return decodeURIComponent(spaced);
  } catch {
    const latin1 = Buffer.from(spaced, "utf8").toString("latin1");
    const bytes = latin1.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    return Buffer.from(bytes, "latin1");
  }
}

/**
 * Yields the pairs in order of appearance. Drops pairs with a malformed escape, and pairs with `;`
 * if that is no separator.
 */
export function* pairsOf(query: string, semicolons = true): Generator<[name: string, value: Value]> {
  for (const pair of query.split(semicolons ? /[&;]/ : "&")) {
    if (pair === "" || pair.includes(";")) continue;
    const at = pair.indexOf("=");
    const name = unescapeQuery(at < 0 ? pair : pair.slice(0, at));
    const value = unescapeQuery(at < 0 ? "" : pair.slice(at + 1));
    if (name !== undefined && value !== undefined) yield [textOf(name), value];
  }
}
