/** The log of a worker. The host writes its lines. */
import type { LogLevel } from "../types.ts";
import { clipped } from "../util/clipped.ts";
import type { Log } from "../util/log.ts";
import { fieldsJson, logBy, logCall } from "../util/log_fields.ts";
import { tracedHere } from "./traced.ts";

/**
 * A line: its level, its text, and its fields as JSON, because not every value can be copied to
 * another thread.
 */
export type SentLine = readonly [LogLevel, string, (string | undefined)?];

/**
 * Maximum number of lines that wait for the host. Further lines are counted and left out.
 */
const MAX_LINES_AHEAD = 500;

export interface WorkerLog extends Pick<Log, "host" | "of"> {
  /** Resolves when the host has all lines that have been written so far. */
  taken(): Promise<void>;
}

/**
 * Returns a log that sends its lines to the host. The next batch waits until the host has the last.
 */
export function logTo(send: (lines: readonly SentLine[]) => Promise<unknown>): WorkerLog {
  let lines: SentLine[] = [];
  let left = 0;
  let sending: Promise<void> | undefined;
  const flush = async () => {
    // Lines that are written in one tick are sent in one message.
    await Promise.resolve();
    while (lines.length > 0) {
      const batch = lines;
      lines = [];
      if (left > 0) batch.push(["warn", `Left out further log lines: ${left}`]);
      left = 0;
      await send(batch).catch(() => undefined);
    }
    sending = undefined;
  };
  const host = logBy((level, values, bound) => {
    if (lines.length >= MAX_LINES_AHEAD) left += 1;
    else {
      const call = logCall(values);
      const traced = tracedHere();
      const isPlain = bound === undefined && traced === undefined;
      const fields = isPlain ? call.fields : { ...traced, ...bound, ...call.fields };
      // The host masks them.
      const json = fields === undefined ? undefined : fieldsJson(fields, (text) => text);
      lines.push([level, clipped(call.message()), json]);
    }
    sending ??= flush();
  });
  return { host, of: () => host, taken: async () => sending };
}
