/** One line of a denylist, in the compact format (IPIP-383 of the public specifications). */
import { base58btc } from "multiformats/bases/base58";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { hashCoded, sha256 } from "../../formats/cid/hashes.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { parsePeerId } from "../../formats/peer_id.ts";
import { failure } from "../../util/errors.ts";
import { trimBoth, trimEnd } from "../../util/trim.ts";

/** Values by key: `gateway_status:451`. */
export type Hints = Readonly<Record<string, string>>;

export interface DenylistRule {
  /** Number of its line, from 1. */
  readonly line: number;
  /** Matching requests are served, even if earlier lines deny them. */
  readonly isException: boolean;
  /** Path below the root or name, without slashes at its ends. */
  readonly path: string;
  /** Whether every path that begins with `path` matches. */
  readonly isPrefix: boolean;
  /** Whether the content is denied for legal reasons: `gateway_status` is 451. */
  readonly isLegal: boolean;
}

/** The key by which a rule is found. */
export type RuleKey =
  | { readonly kind: "content" | "name"; readonly key: string }
  /** `code` is the code of the hash function. */
  | { readonly kind: "hashed"; readonly code: number; readonly key: string };

export interface DenylistItem {
  readonly rule: DenylistRule;
  readonly by: RuleKey;
}

/** Converts bytes to a key of a map. */
export const keyOfBytes = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

/**
 * Returns undefined for comments and empty lines. @throws NodeError for a line that is not an item
 */
export function parseRule(text: string, line: number, listHints: Hints): DenylistItem | undefined {
  const [field = "", ...hints] = text.trim().split(/\s+/);
  if (field === "" || field.startsWith("#")) return undefined;
  const isException = /^[!+-]/.test(field);
  const item = isException ? field.slice(1) : field;
  const status = hintsIn(hints).gateway_status ?? listHints.gateway_status;
  const made = { line, isException, isLegal: status === "451" };
  if (item.startsWith("//")) return { rule: { ...made, path: "", isPrefix: false }, by: hashed(item.slice(2)) };
  const [, space, root = "", below = ""] = /^\/([^/]*)\/([^/]+)(.*)$/.exec(item) ?? [];
  const rule = { ...made, ...pathRule(below) };
  if (space === "ipfs" || space === "ipld") {
    return { rule, by: { kind: "content", key: keyOfBytes(parseCid(root).multihash.bytes) } };
  }
  if (space === "ipns") return { rule, by: { kind: "name", key: nameKey(root) } };
  throw failure("DENYLIST_INVALID", { reason: "it is neither /ipfs/CID, /ipns/NAME nor //HASH" });
}

function hintsIn(fields: readonly string[]): Hints {
  const pairs = fields.map((field) => /^([^:=]+)[:=](.*)$/.exec(field));
  return Object.fromEntries(pairs.flatMap((pair) => (pair === null ? [] : [[pair[1], pair[2]]])));
}

/** In this format `/PATH*` and `/PATH/*` mean the same; `/*` matches everything. */
function pathRule(text: string): Pick<DenylistRule, "path" | "isPrefix"> {
  const isPrefix = text.endsWith("*");
  return { path: unescaped(trimBoth(isPrefix ? text.slice(0, -1) : text, "/")), isPrefix };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw failure("DENYLIST_INVALID", { reason: "its path has a % that escapes nothing" });
  }
}

/** Parses the base58 text of a multihash, or the older form: hexadecimal text of SHA-256. */
function hashed(text: string): RuleKey {
  if (/^[0-9a-f]{64}$/i.test(text)) {
    return { kind: "hashed", code: sha256.code, key: Buffer.from(text, "hex").toString("latin1") };
  }
  const { code, digest } = multihashIn(text);
  if (hashCoded(code)?.digest === undefined) {
    throw failure("DENYLIST_INVALID", { reason: `it is hashed by a function (code ${code}) that cannot be used here` });
  }
  return { kind: "hashed", code, key: keyOfBytes(digest) };
}

function multihashIn(text: string) {
  try {
    return decodeMultihash(base58btc.decode(`z${text}`));
  } catch (cause) {
    throw failure(
      "DENYLIST_INVALID",
      { reason: "it is neither base58 of a multihash nor hexadecimal of SHA-256" },
      cause,
    );
  }
}

/** Returns the multihash of a key in any text form, or a domain in the form for comparisons. */
export function nameKey(name: string): string {
  const multihash = keyMultihash(name);
  return multihash === undefined ? domainOf(name) : keyOfBytes(multihash);
}

/** Returns a domain in the form for comparisons: in lower case, without the dot of the root. */
export const domainOf = (name: string): string => trimEnd(name, ".").toLowerCase();

/** Returns the multihash of a key or of another CID; undefined for a domain. */
export function keyMultihash(name: string): Uint8Array | undefined {
  try {
    return parsePeerId(name).toMultihash().bytes;
  } catch {
    try {
      return parseCid(name).multihash.bytes;
    } catch {
      return undefined;
    }
  }
}
