/** Decodes base64 as Go does: padding is required, and line breaks may be anywhere. */
import { failure } from "../errors.ts";

const isLetter = new Uint8Array(128);
for (const letter of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
  isLetter[letter] = 1;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const padding = 0x3d;

/**
 * Decodes a text.
 * @throws NodeError with the offset of the first invalid character
 */
export function decodeBase64(text: string): Uint8Array {
  const bad = faultIn(text);
  if (bad !== undefined) throw failure("BASE64_INVALID", { offset: bad });
  return Buffer.from(text, "base64");
}

function faultIn(text: string): number | undefined {
  let group = 0;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text.charCodeAt(at);
    if (isLetter[letter] === 1) {
      group = (group + 1) % 4;
      continue;
    }
    if (letter === lineFeed || letter === carriageReturn) continue;
    return letter !== padding || group < 2 ? at : faultInPadding(text, at, group);
  }
  return group === 0 ? undefined : text.length - group;
}

/** Returns the offset of the first invalid character from the first `=` on. */
function faultInPadding(text: string, first: number, group: number): number | undefined {
  let at = afterLineEnds(text, first + 1);
  if (group === 2) {
    if (at === text.length) return at;
    if (text[at] !== "=") return at - 1;
    at = afterLineEnds(text, at + 1);
  }
  return at === text.length ? undefined : at;
}

function afterLineEnds(text: string, from: number): number {
  let at = from;
  while (text[at] === "\n" || text[at] === "\r") at += 1;
  return at;
}
