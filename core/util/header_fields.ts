import type { ResponseHeaders } from "../types.ts";
import { ModhostError } from "./errors.ts";

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** True for what HTTP calls a token: a header's name, a protocol's. */
export function isToken(text: string): boolean {
  return token.test(text);
}

/** Visible characters, blanks, tabs and the upper half of Latin-1: no line break can slip in. */
const printable = /^[\t\x20-\x7e\x80-\xff]*$/;

const names = new Map<string, string>();
const MAX_REMEMBERED_NAMES = 1024;

/** `content_type` becomes `Content-Type`; throws HEADER_INVALID for what is no field name. */
export function wireName(name: string): string {
  let wire = names.get(name);
  if (wire === undefined) {
    wire = name
      .replaceAll("_", "-")
      .replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());
    if (!token.test(wire))
      throw new ModhostError("HEADER_INVALID", { name: JSON.stringify(name), reason: "it is not a valid header name" });
    if (names.size < MAX_REMEMBERED_NAMES && name.length <= 64) names.set(name, wire);
  }
  return wire;
}

function wireValue(name: string, value: unknown): string {
  const text = typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
  if (text === undefined) {
    throw new ModhostError("HEADER_INVALID", {
      name,
      reason: `its value is a ${typeof value}, not a string, number or list of strings`,
    });
  }
  if (!printable.test(text))
    throw new ModhostError("HEADER_INVALID", {
      name,
      reason: "its value holds a line break or a character that headers cannot carry",
    });
  return text;
}

/** Fields that HTTP/2 forbids: they belong to one HTTP/1.1 connection. */
const connectionFields = new Set(["Connection", "Keep-Alive", "Proxy-Connection", "Upgrade"]);

/** Fields that say how long the body is and what follows it: the service's own matter. */
const framingFields = new Set(["Content-Length", "Transfer-Encoding", "Trailer"]);

/**
 * Header fields as a flat list of names and values in wire form, without those that frame the body.
 * Throws HEADER_INVALID for a name or value that cannot be sent.
 */
export function wireFields(headers: ResponseHeaders, http2: boolean): string[] {
  const fields: string[] = [];
  for (const key in headers) {
    const value = headers[key];
    if (value === undefined || value === null) continue;
    const name = wireName(key);
    if (framingFields.has(name) || (http2 && connectionFields.has(name))) continue;
    if (Array.isArray(value)) for (const one of value) fields.push(name, wireValue(name, one));
    else fields.push(name, wireValue(name, value));
  }
  return fields;
}

/** Takes away what cannot be sent; gives the reasons, which name it. */
export function withoutUnsendable(headers: ResponseHeaders, http2: boolean): ModhostError[] {
  const reasons: ModhostError[] = [];
  for (const key of Object.keys(headers)) {
    try {
      wireFields({ [key]: headers[key] }, http2);
    } catch (error) {
      if (!ModhostError.is(error)) throw error;
      delete headers[key];
      reasons.push(error);
    }
  }
  return reasons;
}
