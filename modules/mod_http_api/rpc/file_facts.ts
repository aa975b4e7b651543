/** Modes and times of files as the reference writes them: Go's file modes, and Go's layouts of times, in UTC. */
import type { UnixTime } from "modhost/node";

/** Bits of Go's file modes beside the permissions. */
export const goModeBits = { directory: 2 ** 31, symlink: 2 ** 27 } as const;

/** Whole seconds of the year 10,000: what comes after has no text in RFC 3339. */
const MAX_SECONDS = 253_402_300_800;
const MIN_SECONDS = -62_135_596_800;
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
const SIX_MONTHS_SECONDS = 182.5 * 24 * 3600;

const two = (number: number): string => String(number).padStart(2, "0");

/** A moment beyond the years 1 to 9999 is shown as the first of them. */
function dateOf({ seconds }: UnixTime): Date {
  return new Date((seconds >= MIN_SECONDS && seconds < MAX_SECONDS ? seconds : MIN_SECONDS) * 1000);
}

const clock = (date: Date): string => `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;

/** RFC 3339, with as many digits of the second's fraction as it has. */
export function rfc3339(time: UnixTime): string {
  const whole = dateOf(time).toISOString().slice(0, 19);
  if (time.nanoseconds === 0) return `${whole}Z`;
  return `${whole}.${String(time.nanoseconds).padStart(9, "0").replace(/0+$/, "")}Z`;
}

/** `6 Sep 2021, 14:18:46 UTC`. */
export function longTime(time: UnixTime): string {
  const date = dateOf(time);
  const day = `${date.getUTCDate()} ${months[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return `${day}, ${clock(date)}:${two(date.getUTCSeconds())} UTC`;
}

/** As `ls -l`: `Sep 13  2020`, or with the hour within half a year. */
export function listTime(time: UnixTime): string {
  const date = dateOf(time);
  const isNear = Math.abs(Date.now() / 1000 - time.seconds) < SIX_MONTHS_SECONDS;
  const rest = isNear ? clock(date) : ` ${date.getUTCFullYear()}`;
  return `${months[date.getUTCMonth()]} ${two(date.getUTCDate())} ${rest}`;
}

/** `-rw-r--r--`, with the letter of its kind in front. */
export function modeText(permissions: number, kind: "-" | "d" | "L"): string {
  const letters = "rwxrwxrwx".split("").map((letter, at) => ((permissions >> (8 - at)) & 1 ? letter : "-"));
  return kind + letters.join("");
}
