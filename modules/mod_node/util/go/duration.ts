/** Prints and parses durations as Go does. */

import { failure } from "../errors.ts";
import { quote } from "./text.ts";

/** Length of each unit in milliseconds. */
const units: ReadonlyMap<string, number> = new Map([
  ["ns", 1e-6],
  ["us", 1e-3],
  ["µs", 1e-3],
  ["μs", 1e-3],
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

/** Largest duration in milliseconds: Go counts nanoseconds in 63 bits. */
const MAX_MILLISECONDS = 2 ** 63 / 1e6;

/**
 * Returns the milliseconds of `1h30m`, `1.5s`, `-10ms` or `0`.
 * @throws NodeError with Go's text
 */
export function parseDuration(text: string): number {
  const invalid = () => failure("DURATION_INVALID", { reason: `time: invalid duration ${quote(text)}` });
  const [, sign, rest = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (rest === "0") return 0;
  if (rest === "") throw invalid();
  let total = 0;
  let left = rest;
  while (left !== "") {
    const [whole, number = ""] = /^([0-9]*\.?[0-9]*)/.exec(left) ?? [""];
    if (!/[0-9]/.test(number)) throw invalid();
    left = left.slice(whole.length);
    const unit = /^[^.0-9]*/.exec(left)?.[0] ?? "";
    if (unit === "") throw failure("DURATION_INVALID", { reason: `time: missing unit in duration ${quote(text)}` });
    const size = units.get(unit);
    if (size === undefined)
      throw failure("DURATION_INVALID", { reason: `time: unknown unit ${quote(unit)} in duration ${quote(text)}` });
    total += Number(number) * size;
    left = left.slice(unit.length);
  }
  if (total >= MAX_MILLISECONDS) throw invalid();
  return sign === "-" ? -total : total;
}

/** Prints milliseconds as Go does: `1h0m0s`, `1.5s`, `20ms`, `0s`. */
export function formatDuration(milliseconds: number): string {
  const nanoseconds = Math.round(Math.abs(milliseconds) * 1e6);
  const sign = milliseconds < 0 ? "-" : "";
  if (nanoseconds === 0) return "0s";
  const small = smallUnits.find(([, size]) => nanoseconds < size * 1000);
  if (small !== undefined) return `${sign}${nanoseconds / small[1]}${small[0]}`;
  const minutes = Math.floor(nanoseconds / 6e10);
  const rest = Math.round(nanoseconds - minutes * 6e10);
  const fraction = String(rest % 1e9)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const seconds = `${Math.floor(rest / 1e9)}${fraction && `.${fraction}`}`;
  const hours = Math.floor(minutes / 60);
  const whole = hours > 0 ? `${hours}h${minutes % 60}m` : minutes > 0 ? `${minutes}m` : "";
  return `${sign}${whole}${seconds}s`;
}

/** Units for durations under a second. */
const smallUnits = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
] as const;
