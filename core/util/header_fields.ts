import type { ResponseHeaders } from "../types.ts";
import { ModhostError } from "./errors.ts";

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Returns true for a token of HTTP: the name of a header or a protocol. */
export function isToken(text: string): boolean {
  return token.test(text);
}

const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns true if a header can carry the text: visible characters, blanks, tabs and the upper half
 * of Latin-1, but no line break.
 */
export function isFieldValue(text: string): boolean {
  return fieldValue.test(text);
}

const names = new Map<string, string>();
const MAX_REMEMBERED_NAMES = 1024;

/**
 * Converts `content_type` to `Content-Type`. @throws HEADER_INVALID for text that is not a field
 * name
 */
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
  if (!isFieldValue(text))
    throw new ModhostError("HEADER_INVALID", {
      name,
      reason: "its value contains a line break or a character that headers cannot carry",
    });
  return text;
}

/**
 * Fields that Node's HTTP/2 refuses to send: they belong to one connection, and mostly to HTTP/1.1.
 */
const connectionFields = new Set(["Connection", "Http2-Settings", "Keep-Alive", "Proxy-Connection", "Te", "Upgrade"]);

/** Fields that describe the length and framing of the body; the service sets them itself. */
const framingFields = new Set(["Content-Length", "Transfer-Encoding", "Trailer"]);

/**
 * Returns header fields as a flat list of names and values in wire form, without those that frame
 * the body. @throws HEADER_INVALID for a name or value that cannot be sent
 */
export function wireFields(headers: ResponseHeaders, http2: boolean): string[] {
  const fields: string[] = [];
  for (const key in headers) {
    const value = headers[key];
    if (value === undefined || value === null) continue;
    const name = wireName(key);
    if (framingFields.has(name) || (http2 && connectionFields.has(name))) continue;
    // A body has only one type: clients use the last line, and middleware reads one text.
    const lines = name === "Content-Type" && Array.isArray(value) ? value.slice(-1) : value;
    if (Array.isArray(lines)) for (const one of lines) fields.push(name, wireValue(name, one));
    else fields.push(name, wireValue(name, lines));
  }
  return fields;
}

/** Removes fields that cannot be sent, and returns the errors, which name them. */
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

/**
 * Returns the value of the header with exactly this name, given in lower case. Repeated lines are
 * joined as in the table of a request's headers, which also accepts other spellings.
 */
export function headerOf(raw: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const line = raw[at] as string;
    // Node.js lists `:authority` before any Host line, and it takes precedence.
    if (name === "host" && line === ":authority") return raw[at + 1];
    if (line.length !== name.length || line.toLowerCase() !== name) continue;
    value = value === undefined ? raw[at + 1] : `${value}${name === "cookie" ? "; " : ", "}${raw[at + 1]}`;
  }
  return value;
}
