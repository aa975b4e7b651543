/** Detects the type of a file by its first bytes. */
import { withCharset } from "./types.ts";

/** Number of bytes that type detection reads. */
export const SNIFFED_BYTES = 3072;

const BYTES = "application/octet-stream";

/** Type, offset of the signature, and the signature in Latin-1; `?` matches any byte. */
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

/** Number of bytes that the signatures cover. */
const SIGNED_BYTES = Math.max(...signatures.map(([, at, signature]) => at + signature.length));

/** Matches a tag with which HTML pages begin. */
const page =
  /^(?:<!--(?:(?!-->)[\s\S])*-->\s*)*<(?:!doctype\s+html|html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p)(?=[\s>/]|$)/i;
const declaration = /^<\?xml\s[^>]*>\s*(?:<!--(?:(?!-->)[\s\S])*-->\s*)*/i;
const svg = /^(?:<!--(?:(?!-->)[\s\S])*-->\s*)*(?:<!doctype\s+svg[^>]*>\s*)?<svg(?=[\s>/]|$)/i;
/** XML document types with a media type of their own, by the text after the declaration. */
const xmlTypes: readonly (readonly [type: string, start: RegExp])[] = [
  ["image/svg+xml", svg],
  ["application/xhtml+xml", /^(?:<!doctype\s+html[^>]*>\s*)?<html\s[^>]*xmlns=/i],
  ["application/rss+xml", /^<rss[\s>/]/i],
  ["application/atom+xml", /^<feed\s[^>]*xmlns=/i],
];
/**
 * Whether a byte is a control character that text never contains. Tab, line ends, form feed and
 * escape are allowed.
 */
const isBinary = (byte: number): boolean =>
  byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d && byte !== 0x1b;

/**
 * `start` contains the first bytes of the file; `isWhole` means that it contains the whole file.
 */
export function typeByContent(start: Uint8Array, isWhole: boolean): string {
  if (start.length === 0 && isWhole) return "text/plain";
  const looked = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, SNIFFED_BYTES));
  const head = looked.toString("latin1", 0, SIGNED_BYTES);
  const known = signatures.find(([, at, signature]) => fits(head, at, signature));
  if (known !== undefined) return known[0];
  const first = firstCharacter(looked);
  const marked = first === "<" ? markup(looked.toString("latin1")) : undefined;
  if (marked !== undefined) return marked;
  if (looked.some(isBinary)) return BYTES;
  if ((first === "{" || first === "[") && isJson(looked.toString(), isWhole && looked.length === start.length)) {
    return "application/json";
  }
  return withCharset("text/plain");
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Whether a byte is a tab, a line end or similar, or one of the two spaces of Latin-1. */
const isBlank = (byte: number): boolean => (byte >= 0x09 && byte <= 0x0d) || byte === 0x20 || byte === 0xa0;

/**
 * Returns the first character after a byte order mark and whitespace. This is enough for most
 * content, and avoids decoding it.
 */
function firstCharacter(bytes: Uint8Array): string {
  let at = BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? BYTE_ORDER_MARK.length : 0;
  while (at < bytes.length && isBlank(bytes[at] as number)) at += 1;
  return String.fromCharCode(bytes[at] ?? 0);
}

/** Returns the type of a text whose first character is `<`. */
function markup(text: string): string | undefined {
  const trimmed = text.replace(/^\xef\xbb\xbf/, "").trimStart();
  const declared = declaration.exec(trimmed)?.[0];
  if (declared !== undefined) {
    const root = trimmed.slice(declared.length);
    return xmlTypes.find(([, start]) => start.test(root))?.[0] ?? withCharset("text/xml");
  }
  if (svg.test(trimmed)) return "image/svg+xml";
  return page.test(trimmed) ? "text/html" : undefined;
}

const jsonToken = /\s*(?:[{}[\],:]|"(?:[^"\\\n\r]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)/iy;

/**
 * Whether a text that begins with a brace or a bracket is JSON. A text that was cut off only has to
 * be a possible beginning of JSON.
 */
function isJson(text: string, isWhole: boolean): boolean {
  if (isWhole) {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  }
  jsonToken.lastIndex = 0;
  let end = 0;
  while (jsonToken.test(text)) end = jsonToken.lastIndex;
  // The cut may have split the last token.
  return /^\s*(?:"(?:[^"\\]|\\.)*\\?|[a-z]{0,4})$/s.test(text.slice(end));
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
