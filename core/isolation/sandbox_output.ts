/**
 * Writes what a sandboxed process prints to the log, line by line, within the limits of the log.
 */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { LogLevel, ModuleLog } from "../types.ts";
import { MAX_TEXT } from "../util/clipped.ts";
import { printable } from "../util/text.ts";
import type { LineAllowance } from "./limits/line_allowance.ts";

/** Maximum number of characters of last words. */
const MAX_WORDS = 500;

/** Matches the last words of a process that has used up its heap. */
const heapUsedUp = /^FATAL ERROR: .*JavaScript heap out of memory/;
/** Matches those of a launcher that could not start the process. */
const notStarted = /^The sandbox cannot start \(/;

export class SandboxOutput {
  readonly #log: ModuleLog;
  readonly #lines: LineAllowance;
  /** Why the process ends, if it has said so. */
  lastWords: string | undefined;

  constructor(log: ModuleLog, lines: LineAllowance) {
    this.#log = log;
    this.#lines = lines;
  }

  follow(stream: Readable, level: LogLevel): void {
    const decoder = new StringDecoder("utf8");
    let rest = "";
    stream.on("data", (piece: Buffer) => {
      const lines = (rest + decoder.write(piece)).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) this.#write(level, line);
      // A line that never ends is written in parts.
      if (rest.length < MAX_TEXT) return;
      this.#write(level, rest);
      rest = "";
    });
    stream.on("end", () => {
      if (rest !== "") this.#write(level, rest);
    });
    stream.on("error", () => undefined);
  }

  #write(level: LogLevel, line: string): void {
    if (heapUsedUp.test(line)) this.lastWords = "out of memory: its heap reached isolated_heap";
    if (notStarted.test(line)) this.lastWords = printable(line.slice(0, MAX_WORDS));
    if (this.#lines.take()) this.#log(level, "%s", line.trimEnd());
  }
}
