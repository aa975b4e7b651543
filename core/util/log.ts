import { channel } from "node:diagnostics_channel";
import type { LogLevel, LogLine, LogTrace, ModuleLog } from "../types.ts";
import { clippedMasked } from "./clipped.ts";
import { readableThrown, reasonOf } from "./errors.ts";
import { LineSink, type SinkOptions } from "./line_sink.ts";
import { fieldsJson, type LogFields, levels, logBy, logCall } from "./log_fields.ts";
import { isColored, painter, type Style } from "./terminal.ts";
import { printable } from "./text.ts";

export type MinimumLevel = LogLevel | "silent";

export interface LogSettings {
  /**
   * Least severe messages that are written; default "info". A function is called for each line,
   * with the name of the module that logs it (undefined for the host itself), so that the level can
   * change while the host runs.
   */
  readonly level?: MinimumLevel | ((module?: string) => MinimumLevel);
  /** "auto" is pretty on a terminal, and JSON lines elsewhere. */
  readonly format?: "auto" | "json" | "pretty";
  /** The path of a file, or an object that takes lines; default: the standard error. */
  readonly destination?: string | LogStream;
}

export interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean;
}

/**
 * The log of one host. Lines are written at once, so none is lost when the process ends. Lines that
 * cannot be written are dropped, and counted in a warning when writing works again: logging never
 * blocks the caller.
 */
export interface Log {
  /** The log of the host itself. */
  readonly host: ModuleLog;
  /** Returns a log whose lines carry the module's name, and the host's unless it is "*". */
  of(module: string, host: string): ModuleLog;
  /** Sets a function that masks every text before it is written. */
  mask(change: (text: string) => string): void;
  /** Writes a line of another log, a JSON object that is masked already; `fields` are added. */
  relay(line: string, fields: Readonly<Record<string, unknown>>): void;
  /** Changes the level or the format for all loggers. */
  configure(settings: Pick<LogSettings, "level" | "format">): void;
  /** Passes each line that is written to `listener`, until the returned function is called. */
  follow(listener: (line: LogLine) => void): () => void;
  /** Returns the latest lines that were written, the oldest first. */
  recent(): LogLine[];
  /**
   * Reopens the file, if the destination is one. @throws the error of opening the file; the current
   * file stays in use then
   */
  reopen(): void;
  /** Closes the file, if the destination is one. */
  close(): void;
}

const rankOf = (level: MinimumLevel): number => (level === "silent" ? levels.length : levels.indexOf(level));

export function createLog(settings: LogSettings = {}): Log {
  const { destination: target = process.stderr } = settings;
  const terminal = typeof target !== "string" && target.isTTY === true;
  const sink = sinkOf(target, {
    recovered(lost, error) {
      if (current.least() > levels.indexOf("warn")) return;
      root.warn("The log could not be written (%s); lines lost: %d", error.message, lost);
    },
  });
  let isClosed = false;
  // Lines that a module logs after its host has stopped are dropped.
  const raw: LogStream = { write: (line) => isClosed || sink.write(line) };
  const pretty = prettyStream(raw, typeof target !== "string" && isColored(target));
  let stream = raw;
  const recent = new RecentLines();
  const followers = new Followers((error) => root.error("A log follower failed and was removed: %s", reasonOf(error)));
  const current: Current = { least: () => 0, masked: (text) => text };
  const configure = ({ level = "info", format: form = "auto" }: Pick<LogSettings, "level" | "format">) => {
    const fixed = typeof level === "function" ? 0 : rankOf(level);
    current.least = typeof level === "function" ? (module) => rankOf(level(module)) : () => fixed;
    stream = form === "pretty" || (form === "auto" && terminal) ? pretty : raw;
  };
  configure(settings);
  const write = (line: string) => {
    stream.write(line);
    followers.publish(line, recent.add(line));
  };
  const root = voice({}, current, write);
  return {
    host: root,
    of: (module, host) => voice(host === "*" ? { module } : { module, host }, current, write),
    mask(change) {
      current.masked = change;
    },
    relay(line, fields) {
      const { level, time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      if (levels.indexOf(level as LogLevel) < current.least(rest.module as string | undefined)) return;
      write(`${JSON.stringify({ level, time, ...fields, ...rest })}\n`);
    },
    configure,
    follow: (listener) => followers.add(listener),
    recent: () => recent.all(),
    reopen: () => sink.reopen?.(),
    close() {
      isClosed = true;
      sink.end?.();
    },
  };
}

const MAX_RECENT_LINES = 1000;
/**
 * Maximum number of characters of these lines together; the last line is always stored, whatever
 * its length.
 */
const MAX_RECENT_CHARACTERS = 512 * 1024;

/** Stores the latest lines as they were written; they are parsed only when they are requested. */
class RecentLines {
  readonly #lines: string[] = [];
  #characters = 0;
  /** Number of lines written so far. */
  #written = 0;

  /** Stores a line; returns its number. */
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
  return { n, ...JSON.parse(line) };
}

/** The followers of a log. */
class Followers {
  readonly #all = new Set<{ readonly listener: (line: LogLine) => void }>();
  readonly #failed: (error: unknown) => void;
  #isPublishing = false;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(listener: (line: LogLine) => void): () => void {
    const follower = { listener: listener };
    this.#all.add(follower);
    return () => void this.#all.delete(follower);
  }

  /**
   * Passes a line to all followers. Lines that a follower itself writes meanwhile are passed to
   * none, which would never end. A follower that throws is removed, without an error for the writer
   * of the line.
   */
  publish(line: string, n: number): void {
    if (this.#all.size === 0 || this.#isPublishing) return;
    this.#isPublishing = true;
    try {
      const value = lineOf(line, n);
      for (const follower of this.#all) {
        try {
          follower.listener(value);
        } catch (error) {
          this.#all.delete(follower);
          this.#failed(error);
        }
      }
    } finally {
      this.#isPublishing = false;
    }
  }
}

/** The writer of a line; the host itself has no name. */
interface Owner {
  readonly module?: string;
  readonly host?: string;
}

/** Settings that can change while loggers exist. */
interface Current {
  /**
   * Returns the index in `levels` of the lowest level that is written for a module, or for the
   * host.
   */
  least: (module?: string) => number;
  masked: (text: string) => string;
}

interface Sink {
  write(line: string): unknown;
  end?(): void;
  reopen?(): void;
}

/** Returns a sink that handles its own write errors. */
function sinkOf(target: string | LogStream, options: Required<Pick<SinkOptions, "recovered">>): Sink {
  if (typeof target === "string") return LineSink.file(target, options);
  const stream = [process.stderr, process.stdout].find((one) => one === target);
  // The standard streams of a worker have no descriptor.
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
      const error = failure;
      const count = lost;
      failure = undefined;
      lost = 0;
      if (error !== undefined) options.recovered(count, error);
    },
  };
}

const lines = channel("modhost:log");

/**
 * Returns what listeners of the channel `modhost:log` add to a line; undefined while there are
 * none.
 */
export function tracedFields(request?: LogTrace["request"]): Record<string, unknown> | undefined {
  if (!lines.hasSubscribers) return undefined;
  const fields: Record<string, unknown> = {};
  lines.publish({ request, fields } satisfies LogTrace);
  return fields;
}

/** Returns the log of one owner. */
function voice(owner: Owner, current: Current, write: (line: string) => void): ModuleLog {
  const head = Object.entries(owner).map(([name, value]) => `,"${name}":${JSON.stringify(value)}`);
  return logBy((level, values, bound) => {
    const rank = levels.indexOf(level);
    if (rank < 0) {
      throw new TypeError(`There is no log level ${String(level)}: use ${levels.join(", ")}`);
    }
    if (rank < current.least(owner.module)) return;
    const { fields, message } = contentOf(values, bound, current);
    const text = JSON.stringify(clippedMasked(message, current.masked));
    const time = new Date().toISOString();
    write(`{"level":"${level}","time":"${time}"${head.join("")}${fields === "" ? "" : `,${fields}`},"msg":${text}}\n`);
  });
}

interface LineContent {
  /** The fields as JSON without the braces. */
  readonly fields: string;
  readonly message: string;
}

/**
 * Formats the values of a call. Getters and `toJSON` of a module can throw, and logging must not
 * fail because of that.
 */
function contentOf(values: readonly unknown[], bound: LogFields | undefined, { masked }: Current): LineContent {
  try {
    const call = logCall(values);
    const traced = tracedFields();
    const isPlain = bound === undefined && call.fields === undefined && traced === undefined;
    const fields = isPlain ? "" : fieldsJson({ ...traced, ...bound, ...call.fields }, masked).slice(1, -1);
    return { fields, message: call.message() };
  } catch (thrown) {
    const message = values.find((value) => typeof value === "string") ?? "a line of the log";
    return { fields: "", message: `${message} (a value cannot be read: ${reasonOf(readableThrown(thrown))})` };
  }
}

const colours: Readonly<Record<string, Style>> = { debug: "dim", info: "cyan", warn: "yellow", error: "red" };

/**
 * Formats lines for people at a terminal: `12:30:01 info  http_hello  message  user=7`. Further
 * lines of a message are indented, so that none looks like a separate log line, and control
 * characters are escaped.
 */
function prettyStream(target: LogStream, coloured: boolean): LogStream {
  const paint = painter(coloured);
  return {
    write(line) {
      const { level, time, module = "host", host, worker, msg, ...fields } = JSON.parse(line) as Record<string, string>;
      const clock = new Date(time ?? 0).toTimeString().slice(0, 8);
      const owner = host === undefined ? module : `${host}:${module}`;
      const who = worker === undefined ? owner : `${owner} (${worker})`;
      const text = [msg, ...Object.entries(fields).map(fieldText)].filter(Boolean).join("  ");
      const shown = text.split(/\r?\n/).map(printable).join("\n    ");
      const label = paint(colours[level ?? ""] ?? "dim", (level ?? "").padEnd(5));
      return target.write(`${paint("dim", clock)} ${label} ${paint("bold", printable(who))}  ${shown}\n`);
    },
  };
}

/** Formats a field: `user=7`. For an error it is the stack, which is what people look for. */
function fieldText([name, value]: readonly [string, unknown]): string {
  if (typeof value === "string") return `${name}=${value}`;
  const { stack, ...rest } = (value ?? {}) as { readonly stack?: unknown };
  if (typeof stack !== "string") return `${name}=${JSON.stringify(value)}`;
  const { type, message, ...others } = rest as Record<string, unknown>;
  return [stack, ...Object.entries(others).map(fieldText)].join("  ");
}
