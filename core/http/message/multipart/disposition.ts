/**
 * Parses the parameters of a Content-Type or Content-Disposition value (RFC 9110, 5.6.6, RFC 6266,
 * RFC 2231).
 */

const parameter = /;[ \t]*([^\s=;"]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))/gs;

/**
 * Returns the parameters by lower-case name; the first counts when a name is repeated. In a quoted
 * value a backslash escapes a quote or another backslash and otherwise stands for itself, because
 * clients send `C:\folder\file` unescaped. `name*=UTF-8''...` is decoded and replaces `name`.
 */
export function parseParameters(value: string): Map<string, string> {
  const found = new Map<string, string>();
  const extended = new Map<string, string>();
  for (const [, rawName = "", quoted, plain = ""] of value.matchAll(parameter)) {
    const name = rawName.toLowerCase();
    const text = quoted === undefined ? plain : quoted.replace(/\\(["\\])/g, "$1");
    if (!name.endsWith("*")) {
      if (!found.has(name)) found.set(name, text);
      continue;
    }
    const decoded = decodeExtended(text);
    if (decoded !== undefined) extended.set(name.slice(0, -1), decoded);
  }
  for (const [name, text] of extended) found.set(name, text);
  return found;
}

/** Decodes `charset'language'percent-encoded`; undefined when that fails. */
function decodeExtended(text: string): string | undefined {
  const [, charset = "", encoded = ""] = /^([^']*)'[^']*'(.*)$/s.exec(text) ?? [];
  try {
    if (charset.toLowerCase() === "utf-8") return decodeURIComponent(encoded);
    if (charset.toLowerCase() === "iso-8859-1") return unescapeBytes(encoded);
  } catch {
    // The bytes are not UTF-8.
  }
  return undefined;
}

function unescapeBytes(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
