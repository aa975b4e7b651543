/** Cuts texts for the log, because the host does nothing else while it writes a long one. */

/** Maximum number of characters of a text. */
export const MAX_TEXT = 64 * 1024;
/** Room for the mark at the end of a cut text, so that the text is not cut a second time. */
const MAX_MARK = 64;

/** Characters of the longest secret that a cut may go through. */
const MAX_SECRET = 16 * 1024;

/** Cuts a text to a length that the host can write without a noticeable pause. */
export function clipped(text: string): string {
  if (text.length <= MAX_TEXT + MAX_MARK) return text;
  return text.slice(0, MAX_TEXT) + mark(text.length - MAX_TEXT);
}

/**
 * Masks a text and cuts it. Masking takes time for each character, so a long text is cut before it,
 * too. The end of that piece may be half a secret, which masking does not find, so it is left out.
 */
export function clippedMasked(text: string, masked: (text: string) => string): string {
  if (text.length <= MAX_TEXT + MAX_SECRET) return clipped(masked(text));
  const piece = masked(text.slice(0, MAX_TEXT + MAX_SECRET));
  const shown = piece.slice(0, Math.min(MAX_TEXT, Math.max(0, piece.length - MAX_SECRET)));
  return shown + mark(text.length - shown.length);
}

const mark = (count: number) => `... (${count} more characters are left out)`;
