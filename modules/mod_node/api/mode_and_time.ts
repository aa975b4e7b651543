/** Modes and times of UnixFS 1.5, as callers give them. */
import type { ModeAndTime, UnixTime } from "../formats/unixfs/format.ts";
import { unixMode } from "../formats/unixfs/mode.ts";
import { failure } from "../util/errors.ts";

/**
 * Permissions as a number, or as octal text such as `"0644"`. Other bits have the meaning of Go's
 * file modes, as in Kubo.
 */
export type ModeInput = number | string;

/** A point in time, in one of the forms of the client libraries. */
export type TimeInput =
  | Date
  | { readonly secs: number; readonly nsecs?: number | undefined }
  | { readonly seconds: number; readonly nanoseconds?: number | undefined }
  | readonly [seconds: number, nanoseconds: number];

const MAX_NANOSECONDS = 999_999_999;

/** Returns the bits to store; undefined for none. @throws NodeError for text that is not octal */
export function modeOf(mode: ModeInput | undefined): number | undefined {
  if (mode === undefined) return undefined;
  if (typeof mode === "string" && !/^[+-]?[0-7]+$/.test(mode)) {
    throw failure("NUMBER_INVALID", { reason: `strconv.ParseInt: parsing ${JSON.stringify(mode)}: invalid syntax` });
  }
  const number = typeof mode === "string" ? Number.parseInt(mode, 8) : mode;
  if (Math.abs(number) > MAX_MODE) {
    throw failure("NUMBER_INVALID", {
      reason: `strconv.ParseInt: parsing ${JSON.stringify(mode)}: value out of range`,
    });
  }
  return unixMode(number);
}

const MAX_MODE = 2 ** 31 - 1;

/** @throws NodeError for an invalid time */
export function timeOf(time: TimeInput | undefined): UnixTime | undefined {
  if (time === undefined) return undefined;
  const [seconds, nanoseconds] = partsOf(time);
  if (Number.isSafeInteger(seconds) && nanoseconds >= 0 && nanoseconds <= MAX_NANOSECONDS) {
    return { seconds, nanoseconds };
  }
  throw failure("OPTION_INVALID", { reason: `mtime nanoseconds must be in range [1, ${MAX_NANOSECONDS}]` });
}

function partsOf(time: TimeInput): readonly [seconds: number, nanoseconds: number] {
  if (time instanceof Date) {
    const milliseconds = time.getTime();
    const seconds = Math.floor(milliseconds / 1000);
    return [seconds, (milliseconds - seconds * 1000) * 1e6];
  }
  if (isPair(time)) return time;
  return "secs" in time ? [time.secs, time.nsecs ?? 0] : [time.seconds, time.nanoseconds ?? 0];
}

const isPair = (time: TimeInput): time is readonly [number, number] => Array.isArray(time);

/** Mode and time of a node, as results show them. */
export interface ShownFacts {
  /** The permissions. */
  readonly mode?: number;
  /** Modification time: seconds since 1970, negative before, and the additional nanoseconds. */
  readonly mtime?: { readonly secs: number; readonly nsecs: number };
}

export const shownFacts = ({ mode, mtime }: ModeAndTime): ShownFacts => ({
  ...(mode !== undefined && { mode }),
  ...(mtime !== undefined && { mtime: { secs: mtime.seconds, nsecs: mtime.nanoseconds } }),
});

/** Returns only the fields that are present. */
export const factsOf = ({ mode, mtime }: ModeAndTime): ModeAndTime => ({
  ...(mode !== undefined && { mode }),
  ...(mtime !== undefined && { mtime }),
});
