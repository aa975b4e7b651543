/**
 * Writes what a sandboxed process prints to the log, line by line, within the limits of the log.
 */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { LogLevel, ModuleLog } from "../types.ts";
import { MAX_TEXT } from "../util/clipped.ts";
import { printable } from "../util/text.ts";
import type { LineAllowance } from "./limits/line_allowance.ts";
import type { TimeShare } from "./limits/time_share.ts";

/** Maximum number of characters of last words. */
const MAX_WORDS = 500;

/** Milliseconds for which output is handled before other work of the host gets its turn. */
const SLICE_MS = 1;

/** Matches the last words of a process that has used up its heap. */
const heapUsedUp = /^FATAL ERROR: .*JavaScript heap out of memory/;
/** Matches those of a launcher that could not start the process. */
const notStarted = /^The sandbox cannot start \(/;

export class SandboxOutput {
  readonly #log: ModuleLog;
  readonly #lines: LineAllowance;
  readonly #time: TimeShare;
  /** Why the process ends, if it has said so. */
  lastWords: string | undefined;

  constructor(log: ModuleLog, lines: LineAllowance, time: TimeShare) {
    this.#log = log;
    this.#lines = lines;
    this.#time = time;
  }

  follow(stream: Readable, level: LogLevel): void {
    const decoder = new StringDecoder("utf8");
    let rest = "";
    const write = (piece: Buffer) => {
      const lines = (rest + decoder.write(piece)).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) this.#write(level, line);
      // A line that never ends is written in parts.
      if (rest.length < MAX_TEXT) return;
      this.#write(level, rest);
      rest = "";
    };
    stream.on("data", (piece: Buffer) => {
      const begun = performance.now();
      write(piece);
      this.#pay(stream, performance.now() - begun);
    });
    stream.on("end", () => {
      if (rest !== "") this.#write(level, rest);
    });
    stream.on("error", () => undefined);
  }

  /** Lines that are left out cost time as well: one piece may contain 65,536 of them. */
  #pay(stream: Readable, took: number): void {
    const pause = this.#time.spend(took);
    if (pause === 0 && took < SLICE_MS) return;
    stream.pause();
    const proceed = () => void stream.resume();
    if (pause === 0) setImmediate(proceed);
    else setTimeout(proceed, pause).unref();
  }

  #write(level: LogLevel, line: string): void {
    if (heapUsedUp.test(line)) this.lastWords = "out of memory: its heap reached isolated_heap";
    if (notStarted.test(line)) this.lastWords = printable(line.slice(0, MAX_WORDS));
    if (this.#lines.take(line.length)) this.#log(level, "%s", line.trimEnd());
  }
}
