/** The node's log. */
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure, NodeError } from "../util/errors.ts";
import { isAtLeast, logLevelNamed, type NodeLogLevel, subsystems } from "../util/log.ts";
import { type CallOptions, readOptions } from "./common.ts";

/** A log event. */
export interface LogEvent {
  /** The message of the event. */
  readonly event: string;
  readonly system: string;
  readonly level?: NodeLogLevel;
  /** Time in the format of RFC 3339. */
  readonly time: string;
}

export interface LogLevelOptions extends CallOptions {
  /**
   * As in Kubo 0.43, accept `default` as a level, meaning that of subsystems whose level was not
   * set, and accept any subsystem name.
   */
  readonly lenient?: boolean | undefined;
}

export interface LogTailOptions extends CallOptions {
  /**
   * Only yield events of this level and above; events without a level count as `info`. @throws
   * NodeError for an unknown level
   */
  readonly level?: string | undefined;
  /** Additional source: passes its events to `emit` until the returned function is called. */
  readonly also?: (emit: (event: LogEvent) => void) => () => void;
}

export interface LogApi {
  /**
   * Sets the lowest level that a subsystem logs; `all` for all subsystems. Resolves to a sentence
   * that confirms it.
   *
   * @throws NodeError for an unknown subsystem or level
   */
  level(subsystem: string, level: string, options?: LogLevelOptions): Promise<{ readonly message: string }>;
  /**
   * Resolves to the lowest logged level by subsystem: of the given one; of all of them and of
   * `(default)` for `all` or `*`; without an argument only the default level, under the key "".
   *
   * @throws NodeError for an unknown subsystem
   */
  levels(subsystem?: string, options?: CallOptions): Promise<Readonly<Record<string, NodeLogLevel>>>;
  /** Resolves to the names of the logging subsystems. */
  ls(options?: CallOptions): Promise<string[]>;
  /**
   * Yields new log events until the signal is aborted. A reader that falls too far behind misses
   * events.
   *
   * @throws NodeError immediately for a level that does not exist
   */
  tail(options?: LogTailOptions): AsyncIterable<LogEvent>;
}

/** Maximum number of events queued for a reader. */
const MAX_WAITING = 10_000;

async function* tail(
  { log }: LowLevelNode,
  { also, signal }: { readonly also: LogTailOptions["also"] | undefined; readonly signal: AbortSignal | undefined },
  least: NodeLogLevel | undefined,
): AsyncGenerator<LogEvent> {
  let waiting: LogEvent[] = [];
  let wake = () => {};
  const emit = (event: LogEvent) => {
    if (least !== undefined && !isAtLeast(event.level ?? "info", least)) return;
    if (waiting.length < MAX_WAITING) waiting.push(event);
    wake();
  };
  const unlisten = [
    log.listen(({ time, level, system, message }) => emit({ event: message, level, system, time: time.toISOString() })),
    also?.(emit),
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

/** @throws NodeError for a level that does not exist */
function leastLevel(text: string): NodeLogLevel {
  try {
    return logLevelNamed(text);
  } catch (error) {
    throw new NodeError("LOG_LEVEL_INVALID", `setting log level ${text}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

export function logApi(node: LowLevelNode): LogApi {
  return {
    async level(subsystem, level, { lenient } = {}) {
      const named = subsystem === "all" ? "*" : subsystem;
      const set = node.log.setLevel(named, level, lenient);
      const changed = `Changed log level of '${named}' to '${level.toLowerCase() === "default" ? set : level}'`;
      node.log.write("core/commands", "info", changed);
      return { message: `${changed}\n` };
    },
    async levels(subsystem = "") {
      const { log } = node;
      if (subsystem === "") return { "": log.defaultLevel };
      const isAll = subsystem === "all" || subsystem === "*";
      const named = log.names.filter((each) => isAll || each === subsystem);
      if (named.length === 0) throw failure("LOGGER_UNKNOWN", { reason: "error: No such logger" });
      const levels = Object.fromEntries(named.map((each) => [each, log.level(each)]));
      return isAll ? { "(default)": log.defaultLevel, ...levels } : levels;
    },
    ls: async () => [...subsystems],
    tail({ also, level, ...options } = {}) {
      const { signal } = readOptions(options);
      return tail(node, { also, signal }, level === undefined ? undefined : leastLevel(level));
    },
  };
}
