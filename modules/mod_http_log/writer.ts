import { mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { pino } from "pino";

/** Lines wait until there are this many characters of them, or the time given has passed. */
const MAX_BATCH_BYTES = 64 * 1024;
/** When the disk does not keep up, batches beyond this many bytes are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Hears of trouble and its end. */
export interface WriterReports {
  failed(error: Error): void;
  recovered(droppedLines: number): void;
}

/** Writes lines to a file or to standard output, in batches and without holding anybody up. */
export class LineWriter {
  readonly #destination: ReturnType<typeof pino.destination>;
  readonly #reports: WriterReports;
  readonly #delay: number;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;
  #failure: NodeJS.ErrnoException | undefined;
  #dropped = 0;
  readonly #onExit = () => {
    if (this.#failure !== undefined) return;
    this.#flush();
    this.#destination.flushSync();
  };

  /** Lines wait at most `delay` milliseconds. Throws when the file cannot be opened; folders on the way are made. */
  constructor(file: string | undefined, delay: number, reports: WriterReports) {
    this.#delay = delay;
    this.#reports = reports;
    const dest = file === undefined ? process.stdout.fd : openFile(file);
    this.#destination = pino.destination({ dest, sync: false, maxLength: MAX_WAITING_BYTES });
    this.#destination.on("error", (error) => this.#fail(error));
    this.#destination.on("drop", (batch: string) => {
      this.#dropped += batch.split("\n").length - 1;
    });
    this.#destination.on("write", () => this.#recover());
    process.on("exit", this.#onExit);
  }

  write(line: string): void {
    this.#waiting += line;
    if (this.#waiting.length >= MAX_BATCH_BYTES) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), this.#delay).unref();
  }

  /** Resolves when all is written and the file is closed. */
  close(): Promise<void> {
    process.off("exit", this.#onExit);
    this.#flush();
    // Nobody reads any more, and pino has given the stream up.
    if (this.#failure?.code === "EPIPE") return Promise.resolve();
    return new Promise((resolve) => {
      this.#destination.once("close", resolve).once("error", resolve);
      this.#destination.end();
    });
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting === "") return;
    this.#destination.write(this.#waiting);
    this.#waiting = "";
  }

  #fail(error: NodeJS.ErrnoException): void {
    this.#failure = error;
    this.#reports.failed(error);
  }

  #recover(): void {
    if (this.#failure === undefined && this.#dropped === 0) return;
    this.#reports.recovered(this.#dropped);
    this.#failure = undefined;
    this.#dropped = 0;
  }
}

function openFile(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  return openSync(file, "a");
}
