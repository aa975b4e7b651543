/** Prepares texts of strangers for people. */

/** Control characters, line separators, and characters that change the direction of text. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const MAX_LENGTH = 400;

/** Returns a text as one line of bounded length that cannot control a terminal. */
export function shown(text: string): string {
  const line = text.replace(unprintable, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH)}...` : line;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Returns a period for people: "5 minutes", "3 hours", "12 days". */
export function periodText(seconds: number): string {
  const [size, unit] = seconds < HOUR ? [MINUTE, "minute"] : seconds < 3 * DAY ? [HOUR, "hour"] : [DAY, "day"];
  const count = Math.floor(Math.max(0, seconds) / (size as number));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** Returns a size for people: "12 kB". */
export function sizeText(bytes: number): string {
  return bytes < 1000
    ? `${bytes} B`
    : bytes < 1e6
      ? `${(bytes / 1000).toFixed(1)} kB`
      : `${(bytes / 1e6).toFixed(1)} MB`;
}
