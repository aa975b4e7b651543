import { LineSink, type SinkOptions } from "../../core/http/index.ts";

/** Lines wait until there are this many characters of them, or the time given has passed. */
const MAX_BATCH_BYTES = 64 * 1024;

/** Writes lines to a file or to standard output, in batches and without holding anybody up. */
export class LineWriter {
  readonly #sink: LineSink;
  readonly #delay: number;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;

  /** Lines wait at most `delay` milliseconds. Throws when the file cannot be opened; folders on the way are made. */
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

  /** Opens the file again. @throws what opening a file throws: the former goes on then */
  reopen(): void {
    this.#flush();
    this.#sink.reopen();
  }

  /** Resolves when all is written and the file is closed, or whoever reads it has had time for that. */
  async close(): Promise<void> {
    this.#flush();
    await this.#sink.close();
  }

  #flush(): void {
    const lines = this.#taken();
    if (lines !== "") this.#sink.write(lines);
  }

  /** What has waited until now. */
  #taken(): string {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    return lines;
  }
}
