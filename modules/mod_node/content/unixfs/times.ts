/** Times in the format of UnixFS 1.5. */
import type { UnixTime } from "../../formats/unixfs/format.ts";

/** Returns the current time, with the fraction of the second as exact as the system provides it. */
export function unixNow(): UnixTime {
  const seconds = (performance.timeOrigin + performance.now()) / 1000;
  const whole = Math.floor(seconds);
  // A double is exact to microseconds here.
  return { seconds: whole, nanoseconds: Math.floor((seconds - whole) * 1e6) * 1000 };
}

/** Returns a time as a Date, in milliseconds; undefined for a time that a Date cannot represent. */
export function dateOf(time: UnixTime | undefined): Date | undefined {
  const date = time && new Date(time.seconds * 1000 + Math.floor(time.nanoseconds / 1e6));
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date;
}
