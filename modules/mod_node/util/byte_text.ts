/**
 * Converts between names, which are bytes, and texts. Nearly all names are UTF-8. Each byte that is
 * not valid UTF-8 becomes one lone surrogate, U+DC80 to U+DCFF, so that different names have
 * different texts and no byte is lost.
 */
import { isUtf8 } from "node:buffer";
import { letterLength } from "./go/text.ts";

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const REPLACEMENT = "\ufffd";
/** The code unit that would represent the byte 0. */
const ESCAPE = 0xdc00;
/** Matches a low surrogate that is not the second half of a character. */
const escapedByte = /(?<![\ud800-\udbff])[\udc80-\udcff]/g;

/** Returns the text for bytes. */
export function byteText(bytes: Uint8Array): string {
  const text = decoder.decode(bytes);
  if (!text.includes(REPLACEMENT) || isUtf8(bytes)) return text;
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length; ) {
    const letter = letterLength(bytes, at);
    if (letter === 0) {
      parts.push(decoder.decode(bytes.subarray(from, at)), String.fromCharCode(ESCAPE + (bytes[at] as number)));
      from = at + 1;
    }
    at += letter || 1;
  }
  parts.push(decoder.decode(bytes.subarray(from)));
  return parts.join("");
}

/** Returns the number of bytes of a text. */
export const byteLength = (text: string): number =>
  text.isWellFormed() ? Buffer.byteLength(text) : textBytes(text).length;

/** Returns the bytes from which `byteText` made a text. Any other lone surrogate becomes U+FFFD. */
export function textBytes(text: string): Buffer<ArrayBuffer> {
  if (text.isWellFormed()) return Buffer.from(text);
  const parts: Buffer[] = [];
  let from = 0;
  for (const { index } of text.matchAll(escapedByte)) {
    parts.push(Buffer.from(text.slice(from, index)), Buffer.of(text.charCodeAt(index) - ESCAPE));
    from = index + 1;
  }
  parts.push(Buffer.from(text.slice(from)));
  return Buffer.concat(parts);
}
