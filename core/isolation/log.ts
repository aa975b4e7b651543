/** The log of a worker: its lines are written by the host. */
import { format } from "node:util";
import type { LogLevel, ModuleLog } from "../types.ts";
import type { Log } from "../util/log.ts";

/** Lines of the log that the host has not taken yet; more are counted, and left out. */
const MAX_LINES_AHEAD = 500;

export interface WorkerLog extends Log {
  /** Resolves when the host has all lines that are written by now. */
  taken(): Promise<void>;
}

/** A log whose lines go to the host, no faster than it takes them. */
export function logTo(send: (lines: readonly (readonly [LogLevel, string])[]) => Promise<unknown>): WorkerLog {
  let lines: [LogLevel, string][] = [];
  let left = 0;
  let sending: Promise<void> | undefined;
  const flush = async () => {
    // What is written in one go crosses as one.
    await Promise.resolve();
    while (lines.length > 0) {
      const batch = lines;
      lines = [];
      if (left > 0) batch.push(["warn", `${left} more lines of the log are left out`]);
      left = 0;
      await send(batch).catch(() => undefined);
    }
    sending = undefined;
  };
  const write = (level: LogLevel, text: string, ...values: unknown[]) => {
    if (lines.length >= MAX_LINES_AHEAD) left += 1;
    else lines.push([level, format(text, ...values)]);
    sending ??= flush();
  };
  const voice = Object.assign((level: LogLevel, text: string, ...values: unknown[]) => write(level, text, ...values), {
    debug: (text: string, ...values: unknown[]) => write("debug", text, ...values),
    info: (text: string, ...values: unknown[]) => write("info", text, ...values),
    warn: (text: string, ...values: unknown[]) => write("warn", text, ...values),
    error: (text: string, ...values: unknown[]) => write("error", text, ...values),
  }) as ModuleLog;
  return {
    host: voice,
    of: () => voice,
    mask: () => undefined,
    configure: () => undefined,
    close: () => undefined,
    taken: async () => sending,
  } as unknown as WorkerLog;
}
