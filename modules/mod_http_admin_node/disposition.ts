/**
 * Builds Content-Disposition with a name under which a browser can save the file, whatever the
 * entry is called.
 */
import type { ResponseHeaders } from "../../core/types.ts";

/** Maximum length of a name in bytes that every file system accepts. */
const MAX_NAME_BYTES = 200;
/**
 * Characters that must not be in a file name, or disguise it: control characters, separators and
 * changes of text direction.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const unsafe = /[\u0000-\u001f\u007f-\u009f"*/:<>?\\|\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Returns the header for a response that is saved under this name. */
export function attachment(name: string): ResponseHeaders {
  return { content_disposition: disposition("attachment", name) };
}

export function disposition(kind: "attachment" | "inline", name: string): string {
  const safe = safeName(name);
  const ascii = safe.replace(/[^ -~]/g, "_").replaceAll("%", "_");
  const encoded = encodeURIComponent(safe).replace(
    /['()*!]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

/** The end of the name is kept, because its extension shows the type. */
function safeName(name: string): string {
  const clean = name.toWellFormed().replace(unsafe, "_").replace(/^\.+/, "_").trim();
  const bytes = Buffer.from(clean);
  if (bytes.length <= MAX_NAME_BYTES) return clean === "" ? "file" : clean;
  const ending = /\.[A-Za-z0-9]{1,8}(?:\.[A-Za-z0-9]{1,8})?$/.exec(clean)?.[0] ?? "";
  const start = new TextDecoder().decode(bytes.subarray(0, MAX_NAME_BYTES - ending.length)).replace(/\ufffd+$/, "");
  return `${start}${ending}`;
}
