/** Moments as UnixFS 1.5 stores them. */
import type { UnixTime } from "../../formats/unixfs/format.ts";

/** The present moment, with the fraction of the second as exact as the system gives it. */
export function unixNow(): UnixTime {
  const seconds = (performance.timeOrigin + performance.now()) / 1000;
  const whole = Math.floor(seconds);
  // Of the fraction a double has microseconds.
  return { seconds: whole, nanoseconds: Math.floor((seconds - whole) * 1e6) * 1000 };
}

/** Milliseconds since 1970 as a Date holds them; undefined for a moment that it cannot. */
export function dateOf(time: UnixTime | undefined): Date | undefined {
  const date = time && new Date(time.seconds * 1000 + Math.floor(time.nanoseconds / 1e6));
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date;
}
