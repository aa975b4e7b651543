/** Hides the secrets of tokens in texts for the log, messages and records. */

const secret = /mht_\w*/g;

/**
 * Maximum number of nested percent encodings that are decoded. Each one requires a pass over the
 * text.
 */
const MAX_LAYERS = 8;

/** Returns the text with the secret of any token hidden, also in percent encoding. */
export function withoutSecrets(text: string): string {
  const shown = text.includes("mht_") ? text.replace(secret, "mht_...") : text;
  if (!shown.includes("%")) return shown;
  // A part lies between the characters that separate the parts of a URL. Without the lookbehind,
  // each character of a part would be tried as its start.
  return shown.replace(/(?<![^\s/?#&;="'<>])[^\s/?#&;="'<>]*%[^\s/?#&;="'<>]*/g, (part) =>
    percentDecoded(part)?.includes("mht_") === false ? part : "mht_...",
  );
}

/**
 * Decodes percent encoding repeatedly until none is left: a byte becomes a character, and malformed
 * escapes stay. Returns undefined for a text with more encodings than that, which is better hidden.
 */
export function percentDecoded(text: string): string | undefined {
  let decoded = text;
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    const next = decoded.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (next === decoded) return decoded;
    decoded = next;
  }
  return undefined;
}
