/** Prepares texts of strangers for people. */

import { printable } from "../../core/net/http.ts";

const MAX_LENGTH = 400;

/** Returns a text as one line of bounded length that cannot control a terminal. */
export function shown(text: string): string {
  const line = printable(text.replaceAll("\t", " "));
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
