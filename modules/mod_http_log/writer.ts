import { LineSink, type SinkOptions } from "../../core/http/index.ts";

/** Waiting lines are written when they reach this size, or when the delay has passed. */
const MAX_BATCH_BYTES = 64 * 1024;

/** Writes lines to a file or to standard output, in batches and without blocking. */
export class LineWriter {
  readonly #sink: LineSink;
  readonly #delay: number;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;

  /**
   * Lines wait at most `delay` milliseconds. Creates missing folders. Throws if the file cannot be
   * opened.
   */
  constructor(file: string | undefined, delay: number, reports: Pick<SinkOptions, "failed" | "recovered">) {
    this.#delay = delay;
    const options = { ...reports, isAsync: true, rest: () => this.#taken() };
    this.#sink = file === undefined ? LineSink.stream(process.stdout, options) : LineSink.file(file, options);
  }

  write(line: string): void {
    this.#waiting += line;
    if (this.#waiting.length >= MAX_BATCH_BYTES) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), this.#delay).unref();
  }

  /**
   * Opens the file again, for log rotation. @throws the error of opening the file; writing then
   * continues to the old file
   */
  reopen(): void {
    this.#flush();
    this.#sink.reopen();
  }

  /**
   * Resolves when everything is written and the file is closed, or after a time limit for a slow
   * reader.
   */
  async close(): Promise<void> {
    this.#flush();
    await this.#sink.close();
  }

  #flush(): void {
    const lines = this.#taken();
    if (lines !== "") this.#sink.write(lines);
  }

  /** Returns the waiting lines. */
  #taken(): string {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    return lines;
  }
}
