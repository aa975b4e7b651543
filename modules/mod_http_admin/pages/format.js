/** Formats numbers, sizes and times in the browser's language. */

const units = ["B", "kB", "MB", "GB", "TB", "PB"];

/** "88 B", "1.2 kB", "73.4 MB": powers of 1000. @param {number | undefined} bytes */
export function size(bytes) {
  if (bytes === undefined) return "";
  let value = bytes;
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** @param {number | undefined} bytes a second */
export const rate = (bytes) => (bytes === undefined ? "" : `${size(bytes)}/s`);

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** @param {number | undefined} value */
export const count = (value) => (value === undefined ? "" : whole.format(value));
/** "1 pin", "2 pins". @param {number} value @param {string} one @param {string} [several] */
export const counted = (value, one, several = `${one}s`) => `${count(value)} ${value === 1 ? one : several}`;
/** "12.3K" from ten thousand on. @param {number | undefined} value */
export const compact = (value) =>
  value === undefined ? "" : value < 10_000 ? whole.format(value) : short.format(value);
/** @param {number | undefined} share 0 to 1 */
export const percent = (share) =>
  share === undefined ? "" : `${(share * 100).toFixed(share >= 0.0005 && share < 0.1 ? 1 : 0)} %`;

/** "0.4 ms", "12 ms", "3.2 s", "4 min", "2 h", "5 d". @param {number | undefined} ms */
export function duration(ms) {
  if (ms === undefined || !Number.isFinite(ms)) return "";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
/** @type {readonly (readonly [number, Intl.RelativeTimeFormatUnit])[]} */
const steps = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

/** "3 minutes ago", "in 60 days". @param {string | number | Date} time @param {number} [now] */
export function ago(time, now = Date.now()) {
  const seconds = (new Date(time).getTime() - now) / 1000;
  const [length, unit] = steps.find(([each]) => Math.abs(seconds) >= each) ?? [1, "second"];
  if (unit === "second" && Math.abs(seconds) < 5) return "just now";
  return relative.format(Math.round(seconds / length), unit);
}

const clockForm = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const fullForm = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** "14:03:07". @param {string | number | Date} time */
export const clock = (time) => clockForm.format(new Date(time));
/** @param {string | number | Date} time */
export const fullTime = (time) => fullForm.format(new Date(time));

/**
 * Makes a name that somebody else chose safe to show. Characters that are invisible or change the
 * direction of text are replaced by their code.
 * @param {string} text
 */
export function printable(text) {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]/gu,
    (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`,
  );
}
