/** Percent coding, paths and status phrases: the pure functions of `modhost/net/http`. */
import { STATUS_CODES } from "./node_http.ts";

/** Reason phrases by status code, for every registered code. */
export const status_codes: Readonly<Record<number, string | undefined>> = Object.freeze({ ...STATUS_CODES });

const reserved = /[^A-Za-z0-9._~-]+/g;
const escapes = /(?:%[0-9A-Fa-f]{2})+/g;
/** ASCII characters by their escapes, with digits in lower and in upper case. */
const letters: ReadonlyMap<string, string> = new Map(
  Array.from({ length: 0x80 }, (_, code) => {
    const hex = code.toString(16).padStart(2, "0");
    return [hex, hex.toUpperCase()].map((digits) => [`%${digits}`, String.fromCharCode(code)] as const);
  }).flat(),
);

/**
 * Escapes everything except letters, digits and `. ~ _ -` as UTF-8 bytes in lower-case hex. Returns
 * undefined for undefined or null.
 */
export function urlencode(text: string): string;
export function urlencode(text: string | null | undefined): string | undefined;
export function urlencode(text: string | null | undefined): string | undefined {
  return text?.replace(reserved, (run) => Buffer.from(run, "utf8").toString("hex").replace(/../g, "%$&"));
}

/**
 * Replaces escapes by the UTF-8 text that they encode. A lone percent, a bad escape and `+` stay.
 * Returns undefined for undefined or null.
 */
export function urldecode(text: string): string;
export function urldecode(text: string | null | undefined): string | undefined;
export function urldecode(text: string | null | undefined): string | undefined {
  if (!text?.includes("%")) return text ?? undefined;
  return text.replace(
    escapes,
    (run) => letters.get(run) ?? Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"),
  );
}

/**
 * Returns true if the comma-separated header value contains the token:
 * `contains_token("gzip, Br", "br")`. Case and blanks are ignored; an empty list contains the empty
 * token.
 */
export function contains_token(list: string, token: string): boolean {
  return list
    .replace(/[ \t]+/g, "")
    .toLowerCase()
    .split(",")
    .includes(token.toLowerCase());
}

/**
 * Adds a missing slash at the start, and removes one at the end, or adds it there with `is_dir`.
 */
export function normalize_path(path: string, is_dir = false): string {
  const trimmed = path.endsWith("/") ? path.slice(0, -1) : path;
  const rooted = trimmed.startsWith("/") ? trimmed : `/${trimmed}`;
  return is_dir && rooted !== "/" ? `${rooted}/` : rooted;
}
