/**
 * Modes and times of files as Kubo writes them: Go's file modes, and Go's time layouts in
 * UTC.
 */
import type { UnixTime } from "modhost/node";

/** Bits of Go's file modes other than the permissions. */
const goModeBits = { directory: 2 ** 31, symlink: 2 ** 27, setuid: 2 ** 23, setgid: 2 ** 22, sticky: 2 ** 20 } as const;

/** Converts the mode of a node to Go's form; 0 for a node without a mode. */
export function goMode(mode = 0, kind: "file" | "directory" | "symlink" = "file"): number {
  const bits = (mode & 0o777) | ((mode & 0o6000) << 12) | ((mode & 0o1000) << 11);
  return bits === 0 || kind === "file" ? bits : bits + goModeBits[kind];
}

const isSet = (mode: number, bit: number): boolean => Math.floor(mode / bit) % 2 === 1;

/** Seconds at the start of the year 10,000. RFC 3339 has no text for later times. */
const MAX_SECONDS = 253_402_300_800;
const MIN_SECONDS = -62_135_596_800;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
const SIX_MONTHS_SECONDS = 182.5 * 24 * 3600;

const two = (number: number): string => String(number).padStart(2, "0");

/** Times outside the years 1 to 9999 are shown as the first second of the year 1. */
function dateOf({ seconds }: UnixTime): Date {
  return new Date((seconds >= MIN_SECONDS && seconds < MAX_SECONDS ? seconds : MIN_SECONDS) * 1000);
}

const clock = (date: Date): string => `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;

/** Formats as RFC 3339, with as many digits of the second's fraction as it has. */
export function rfc3339(time: UnixTime): string {
  const whole = dateOf(time).toISOString().slice(0, 19);
  if (time.nanoseconds === 0) return `${whole}Z`;
  return `${whole}.${String(time.nanoseconds).padStart(9, "0").replace(/0+$/, "")}Z`;
}

/** Formats like `6 Sep 2021, 14:18:46 UTC`. */
export function longTime(time: UnixTime): string {
  const date = dateOf(time);
  const day = `${date.getUTCDate()} ${months[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return `${day}, ${clock(date)}:${two(date.getUTCSeconds())} UTC`;
}

/** Formats like `ls -l`: `Sep 13 2020`, or with the time of day within half a year. */
export function listTime(time: UnixTime): string {
  const date = dateOf(time);
  const isNear = Math.abs(Date.now() / 1000 - time.seconds) < SIX_MONTHS_SECONDS;
  const rest = isNear ? clock(date) : ` ${date.getUTCFullYear()}`;
  return `${months[date.getUTCMonth()]} ${two(date.getUTCDate())} ${rest}`;
}

const permissionLetters = (mode: number): string[] =>
  "rwxrwxrwx".split("").map((letter, at) => (isSet(mode, 2 ** (8 - at)) ? letter : "-"));

/** Formats like `ls -l`: `-rw-r--r--`. */
export function listMode(mode: number): string {
  const letters = permissionLetters(mode);
  const special = [
    [2, goModeBits.setuid, "s"],
    [5, goModeBits.setgid, "s"],
    [8, goModeBits.sticky, "t"],
  ] as const;
  for (const [at, bit, letter] of special) {
    if (isSet(mode, bit)) letters[at] = letters[at] === "-" ? letter.toUpperCase() : letter;
  }
  const kind = isSet(mode, goModeBits.directory) ? "d" : isSet(mode, goModeBits.symlink) ? "l" : "-";
  return kind + letters.join("");
}

/** Formats like Go: `-rw-r--r--`, with a lower-case letter in front for each further bit. */
export function goModeText(mode: number): string {
  const further = { d: "directory", l: "symlink", u: "setuid", g: "setgid", t: "sticky" } as const;
  const letters = Object.entries(further).flatMap(([letter, name]) => (isSet(mode, goModeBits[name]) ? [letter] : []));
  return (letters.join("") || "-") + permissionLetters(mode).join("");
}
