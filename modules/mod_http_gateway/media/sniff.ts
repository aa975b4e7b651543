/** Of what type a file is, by how it begins. */
import { withCharset } from "./types.ts";

/** Bytes that are looked at. */
export const SNIFFED_BYTES = 3072;

const BYTES = "application/octet-stream";

/** Type, where its signature begins, and the signature in Latin-1; `?` is any byte. */
const signatures: readonly (readonly [type: string, at: number, signature: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF87a"],
  ["image/gif", 0, "GIF89a"],
  ["image/webp", 0, "RIFF????WEBP"],
  ["image/avif", 4, "ftypavif"],
  ["image/heic", 4, "ftypheic"],
  ["image/bmp", 0, "BM????\0\0\0\0"],
  ["image/tiff", 0, "II*\0"],
  ["image/tiff", 0, "MM\0*"],
  ["image/vnd.microsoft.icon", 0, "\0\0\x01\0"],
  ["image/jxl", 0, "\xff\x0a"],
  ["audio/wav", 0, "RIFF????WAVE"],
  ["video/x-msvideo", 0, "RIFF????AVI "],
  ["audio/mpeg", 0, "ID3"],
  ["audio/mpeg", 0, "\xff\xfb"],
  ["audio/flac", 0, "fLaC"],
  ["audio/midi", 0, "MThd"],
  ["audio/mp4", 4, "ftypM4A"],
  ["video/quicktime", 4, "ftypqt"],
  ["video/mp4", 4, "ftyp"],
  ["video/webm", 0, "\x1a\x45\xdf\xa3"],
  ["application/pdf", 0, "%PDF-"],
  ["application/gzip", 0, "\x1f\x8b"],
  ["application/x-bzip2", 0, "BZh"],
  ["application/x-xz", 0, "\xfd7zXZ\0"],
  ["application/zstd", 0, "\x28\xb5\x2f\xfd"],
  ["application/zip", 0, "PK\x03\x04"],
  ["application/zip", 0, "PK\x05\x06"],
  ["application/vnd.rar", 0, "Rar!\x1a\x07"],
  ["application/x-7z-compressed", 0, "7z\xbc\xaf\x27\x1c"],
  ["application/wasm", 0, "\0asm"],
  ["application/x-tar", 257, "ustar"],
  ["font/woff", 0, "wOFF"],
  ["font/woff2", 0, "wOF2"],
  ["font/otf", 0, "OTTO"],
  ["font/ttf", 0, "\0\x01\0\0"],
];

/** Bytes that signatures are in. */
const SIGNED_BYTES = Math.max(...signatures.map(([, at, signature]) => at + signature.length));

/** Tags with which pages begin, without the bracket. */
const page =
  /^(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*)*<(?:!doctype\s+html|html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p)(?=[\s>/]|$)/i;
const svg = /^(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*)*(?:<!doctype\s+svg[^>]*>\s*)?<svg(?=[\s>/]|$)/i;
/** Control characters that no text has: all but tab, line ends, form feed and escape. */
const isBinary = (byte: number): boolean =>
  byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d && byte !== 0x1b;

/** `start` is the first bytes of the file, `isWhole` that there are no more. */
export function typeByContent(start: Uint8Array, isWhole: boolean): string {
  if (start.length === 0 && isWhole) return "text/plain";
  const looked = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, SNIFFED_BYTES));
  const head = looked.toString("latin1", 0, SIGNED_BYTES);
  const known = signatures.find(([, at, signature]) => fits(head, at, signature));
  if (known !== undefined) return known[0];
  const marked = beginsWithTag(looked) ? markup(looked.toString("latin1")) : undefined;
  if (marked !== undefined) return marked;
  if (looked.some(isBinary)) return BYTES;
  return withCharset("text/plain");
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Tab, line ends and the like, and both spaces of Latin-1. */
const isBlank = (byte: number): boolean => (byte >= 0x09 && byte <= 0x0d) || byte === 0x20 || byte === 0xa0;

/** After a byte order mark and blanks. Most contents do not, and no text need be made of them. */
function beginsWithTag(bytes: Uint8Array): boolean {
  let at = BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? BYTE_ORDER_MARK.length : 0;
  while (at < bytes.length && isBlank(bytes[at] as number)) at += 1;
  return bytes[at] === "<".charCodeAt(0);
}

/** Of a text that `beginsWithTag`. */
function markup(text: string): string | undefined {
  const trimmed = text.replace(/^\xef\xbb\xbf/, "").trimStart();
  if (svg.test(trimmed)) return "image/svg+xml";
  if (page.test(trimmed)) return "text/html";
  return /^<\?xml\s/.test(trimmed) ? withCharset("text/xml") : undefined;
}

function fits(text: string, at: number, signature: string): boolean {
  if (!signature.includes("?")) return text.startsWith(signature, at);
  if (text.length < at + signature.length) return false;
  for (let index = 0; index < signature.length; index += 1) {
    const wanted = signature[index];
    if (wanted !== "?" && text[at + index] !== wanted) return false;
  }
  return true;
}
