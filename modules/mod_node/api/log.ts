/** The node's log. */
import type { LowLevelNode } from "../low_level_node.ts";
import { NodeError } from "../util/errors.ts";
import { isAtLeast, logLevelNamed, type NodeLogLevel, subsystems } from "../util/log.ts";
import { type CallOptions, reading } from "./common.ts";

/** A log event. */
export interface LogEvent {
  /** The message. */
  readonly event: string;
  readonly system: string;
  readonly level?: NodeLogLevel;
  /** RFC 3339. */
  readonly time: string;
}

export interface LogLevelOptions extends CallOptions {
  /** Take `default` as a level, which is that of parts whose level was not set, and any name for a part, as Kubo 0.43 does. */
  readonly lenient?: boolean | undefined;
}

export interface LogTailOptions extends CallOptions {
  /** Only events of this level and above; those that have none count as `info`. @throws NodeError for another word */
  readonly level?: string | undefined;
  /** Passes new events to `tell` until the returned function is called. */
  readonly also?: (tell: (event: LogEvent) => void) => () => void;
}

export interface LogApi {
  /**
   * From which level on a part of the node logs; `all` for all parts. Gives a sentence that says so.
   *
   * @throws NodeError for a part or a level that there is not
   */
  level(subsystem: string, level: string, options?: LogLevelOptions): Promise<{ readonly message: string }>;
  /**
   * The lowest level that is logged, by subsystem: of one; of `all` or `*`, and of `(default)`; of none the default, as "".
   *
   * @throws NodeError for a part that there is not
   */
  levels(subsystem?: string, options?: CallOptions): Promise<Readonly<Record<string, NodeLogLevel>>>;
  /** The names of the logging subsystems. */
  ls(options?: CallOptions): Promise<string[]>;
  /** Yields new log events until the signal is aborted. A reader that falls too far behind misses events. */
  tail(options?: LogTailOptions): AsyncIterable<LogEvent>;
}

/** Maximum number of events queued for a reader. */
const MAX_WAITING = 10_000;

async function* tail({ log }: LowLevelNode, { also, level, ...options }: LogTailOptions): AsyncGenerator<LogEvent> {
  const { signal } = reading(options);
  const least = level === undefined ? undefined : logLevelNamed(level);
  let waiting: LogEvent[] = [];
  let wake = () => {};
  const tell = (event: LogEvent) => {
    if (least !== undefined && !isAtLeast(event.level ?? "info", least)) return;
    if (waiting.length < MAX_WAITING) waiting.push(event);
    wake();
  };
  const unlisten = [
    log.listen(({ time, level, system, message }) => tell({ event: message, level, system, time: time.toISOString() })),
    also?.(tell),
  ];
  const ended = () => wake();
  signal?.addEventListener("abort", ended);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const events = waiting;
      waiting = [];
      yield* events;
      if (waiting.length === 0 && signal?.aborted !== true) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", ended);
    for (const end of unlisten) end?.();
  }
}

export function logApi(node: LowLevelNode): LogApi {
  return {
    async level(subsystem, level, { lenient } = {}) {
      const named = subsystem === "all" ? "*" : subsystem;
      const set = node.log.setLevel(named, level, lenient);
      return { message: `Changed log level of '${named}' to '${level.toLowerCase() === "default" ? set : level}'\n` };
    },
    async levels(subsystem = "") {
      const { log } = node;
      if (subsystem === "") return { "": log.defaultLevel };
      const isAll = subsystem === "all" || subsystem === "*";
      const named = log.names.filter((each) => isAll || each === subsystem);
      if (named.length === 0) throw new NodeError("error: No such logger");
      const levels = Object.fromEntries(named.map((each) => [each, log.level(each)]));
      return isAll ? { "(default)": log.defaultLevel, ...levels } : levels;
    },
    ls: async () => [...subsystems],
    tail: (options = {}) => tail(node, options),
  };
}
