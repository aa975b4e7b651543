import { format } from "node:util";
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import type { LogLevel, LogLine, ModuleLog } from "../types.ts";
import { reasonOf } from "./errors.ts";
import { LineSink, type SinkOptions } from "./line_sink.ts";
import { isColored, painter, type Style } from "./terminal.ts";
import { printable } from "./text.ts";

export interface LogSettings {
  /** Least severe messages that are written; default "info". */
  readonly level?: LogLevel | "silent";
  /** "auto" is pretty on a terminal and JSON lines elsewhere. */
  readonly format?: "auto" | "json" | "pretty";
  /** The path of a file, or whatever takes lines; default: the standard error output. */
  readonly destination?: string | LogStream;
}

export interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean;
}

/**
 * The log of one host. Lines are written at once, so none is lost when the process ends. Those that cannot be written are
 * dropped, and counted in a warning when writing works again: a log stops nobody.
 */
export interface Log {
  /** The host's own voice. */
  readonly host: ModuleLog;
  /** A log whose lines carry the module's name, and the host's unless it is "*". */
  of(module: string, host: string): ModuleLog;
  /** Every text goes through this function from now on, before it is written. */
  mask(change: (text: string) => string): void;
  /** Writes a line of another log, a JSON object, as it was masked there; `fields` are added. */
  relay(line: string, fields: Readonly<Record<string, unknown>>): void;
  /** Another level or format from now on, for all that write. */
  configure(settings: Pick<LogSettings, "level" | "format">): void;
  /** Tells each line that is written, until the function that this gives is called. */
  follow(hear: (line: LogLine) => void): () => void;
  /** The latest lines that were written, the oldest first. */
  recent(): LogLine[];
  /** Opens the file again, when the destination is one. @throws what opening a file throws: the former goes on then */
  reopen(): void;
  /** Closes the file, when the destination is one. */
  close(): void;
}

const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function createLog(settings: LogSettings = {}): Log {
  const { destination: target = process.stderr } = settings;
  const terminal = typeof target !== "string" && target.isTTY === true;
  const sink = sinkOf(target, {
    recovered(lost, error) {
      if (current.least > levels.indexOf("warn")) return;
      root.warn(`The log could not be written (${error.message}): ${lost} lines are missing`);
    },
  });
  let isClosed = false;
  // A module may have something to say after its host has stopped: there is nobody to hear it.
  const raw: LogStream = { write: (line) => isClosed || sink.write(line) };
  const pretty = prettyStream(raw, typeof target !== "string" && isColored(target));
  let stream = raw;
  const recent = new RecentLines();
  const followers = new Followers((error) =>
    root.error(current.masked(`A follower of the log failed, and hears no more: ${reasonOf(error)}`)),
  );
  const current: Current = { least: 0, masked: (text) => text };
  const configure = ({ level = "info", format: form = "auto" }: Pick<LogSettings, "level" | "format">) => {
    current.least = level === "silent" ? levels.length : levels.indexOf(level);
    stream = form === "pretty" || (form === "auto" && terminal) ? pretty : raw;
  };
  configure(settings);
  // Which levels are written is decided before the logger is asked: those of modules would keep the level of their making.
  const destination: DestinationStream = {
    write(line: string) {
      stream.write(line);
      followers.tell(line, recent.add(line));
    },
  };
  const root = pino(
    {
      level: "debug",
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return {
    host: voice(root, current),
    of: (module, host) => voice(root.child(host === "*" ? { module } : { module, host }), current),
    mask(change) {
      current.masked = change;
    },
    relay(line, fields) {
      const { level, time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      if (levels.indexOf(level as LogLevel) < current.least) return;
      destination.write(`${JSON.stringify({ level, time, ...fields, ...rest })}\n`);
    },
    configure,
    follow: (hear) => followers.add(hear),
    recent: () => recent.all(),
    reopen: () => sink.reopen?.(),
    close() {
      isClosed = true;
      sink.end?.();
    },
  };
}

const MAX_RECENT_LINES = 1000;
/** Of these lines together; a line of whatever length is kept until the next one. */
const MAX_RECENT_CHARACTERS = 512 * 1024;

/** The latest lines, as they were written: nothing is made of them before somebody asks. */
class RecentLines {
  readonly #lines: string[] = [];
  #characters = 0;
  /** Lines that were written so far. */
  #written = 0;

  /** Gives the number of the line. */
  add(line: string): number {
    this.#lines.push(line);
    this.#characters += line.length;
    while (
      this.#lines.length > MAX_RECENT_LINES ||
      (this.#characters > MAX_RECENT_CHARACTERS && this.#lines.length > 1)
    )
      this.#characters -= this.#lines.shift()?.length ?? 0;
    this.#written += 1;
    return this.#written;
  }

  all(): LogLine[] {
    const first = this.#written - this.#lines.length + 1;
    return this.#lines.map((line, at) => lineOf(line, first + at));
  }
}

function lineOf(line: string, n: number): LogLine {
  return { n, ...(JSON.parse(line) as Omit<LogLine, "n">) };
}

/** Those who hear the lines of a log. */
class Followers {
  readonly #all = new Set<{ readonly hear: (line: LogLine) => void }>();
  readonly #failed: (error: unknown) => void;
  #isTelling = false;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(hear: (line: LogLine) => void): () => void {
    const follower = { hear };
    this.#all.add(follower);
    return () => void this.#all.delete(follower);
  }

  /**
   * What a follower itself writes meanwhile is told to nobody: there would be no end of it. One that fails hears no more,
   * and whoever has written the line notices nothing.
   */
  tell(line: string, n: number): void {
    if (this.#all.size === 0 || this.#isTelling) return;
    this.#isTelling = true;
    try {
      const value = lineOf(line, n);
      for (const follower of this.#all) {
        try {
          follower.hear(value);
        } catch (error) {
          this.#all.delete(follower);
          this.#failed(error);
        }
      }
    } finally {
      this.#isTelling = false;
    }
  }
}

/** What can be changed while there are loggers. */
interface Current {
  /** Place in `levels` of the lowest that is written. */
  least: number;
  masked: (text: string) => string;
}

interface Sink {
  write(line: string): unknown;
  end?(): void;
  reopen?(): void;
}

/** Whatever takes lines, and lets nobody notice when it cannot. */
function sinkOf(target: string | LogStream, options: Required<Pick<SinkOptions, "recovered">>): Sink {
  if (typeof target === "string") return LineSink.file(target, options);
  const stream = [process.stderr, process.stdout].find((one) => one === target);
  // Those of a worker have none.
  if (stream?.fd !== undefined) return LineSink.stream(stream, options);
  let failure: Error | undefined;
  let lost = 0;
  return {
    write(line) {
      try {
        target.write(line);
      } catch (error) {
        failure ??= error instanceof Error ? error : new Error(String(error));
        lost += 1;
        return;
      }
      const [error, count] = [failure, lost];
      failure = undefined;
      lost = 0;
      if (error !== undefined) options.recovered(count, error);
    },
  };
}

/** A pino logger with the printf-style calls of the module object. */
function voice(logger: Logger, current: Current): ModuleLog {
  const write = (level: LogLevel, message: string, values: unknown[]) => {
    const rank = levels.indexOf(level);
    if (rank < 0) {
      throw new TypeError(`There is no log level ${String(level)}: use ${levels.join(", ")}`);
    }
    if (rank >= current.least) logger[level](current.masked(format(message, ...values)));
  };
  const log = (level: LogLevel, message: string, ...values: unknown[]) => write(level, message, values);
  const methods = levels.map((level) => [
    level,
    (message: string, ...values: unknown[]) => write(level, message, values),
  ]);
  return Object.assign(log, Object.fromEntries(methods) as Record<LogLevel, ModuleLog["info"]>);
}

const colours: Readonly<Record<string, Style>> = { debug: "dim", info: "cyan", warn: "yellow", error: "red" };

/**
 * For people at a terminal: `12:30:01 info  http_hello  message`. Lines of a message after its first are indented, so that
 * none passes for one of the log, and what could steer the terminal is escaped.
 */
function prettyStream(target: LogStream, coloured: boolean): LogStream {
  const paint = painter(coloured);
  return {
    write(line) {
      const { level, time, module = "host", host, worker, msg } = JSON.parse(line) as Record<string, string>;
      const clock = new Date(time ?? 0).toTimeString().slice(0, 8);
      const owner = host === undefined ? module : `${host}:${module}`;
      const who = worker === undefined ? owner : `${owner} (${worker})`;
      const text = (msg ?? "").split(/\r?\n/).map(printable).join("\n    ");
      const label = paint(colours[level ?? ""] ?? "dim", (level ?? "").padEnd(5));
      return target.write(`${paint("dim", clock)} ${label} ${paint("bold", printable(who))}  ${text}\n`);
    },
  };
}
