/**
 * Writes logs to a file or a standard stream. A full disk, a missing reader or a closed stream
 * never blocks the caller.
 */
import { closeSync, constants, fstatSync, mkdirSync, openSync, statSync, write, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Maximum number of bytes that wait for a slow reader or disk; further lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Milliseconds between attempts while nobody reads. */
const RETRY_DELAY = 50;
/** Milliseconds without progress after which `close` stops waiting for the reader. */
const MAX_END_TIME = 1000;
const NEWLINE = 10;

export interface SinkOptions {
  /** Writes lines in background threads, not before `write` returns. Only for files. */
  readonly isAsync?: boolean;
  /** Returns the lines that the caller has buffered, when the process exits. */
  rest?(): string;
  /** Called once when lines start to be lost. */
  failed?(error: Error): void;
  /** Called when writing works again, with the number of lines that were lost. */
  recovered?(lost: number, error: Error): void;
}

/**
 * Writes lines in order to a file or a standard stream. It never throws, and never waits for a
 * reader. Lines that cannot be written are dropped and counted; the count is reported with the
 * first line that can be written again.
 */
export class LineSink {
  #fd: number;
  /** The descriptor of the reopened file, which replaces the current one after a complete line. */
  #next: number | undefined;
  readonly #path: string | undefined;
  readonly #isOwn: boolean;
  readonly #isAsync: boolean;
  readonly #options: SinkOptions;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #isClosed = false;
  /** The last byte that was written did not end a line, and its rest is lost. */
  #isTorn = false;
  #failure: Error | undefined;
  #lost = 0;

  private constructor(fd: number, isOwn: boolean, options: SinkOptions, path?: string) {
    this.#fd = fd;
    this.#path = path;
    this.#isOwn = isOwn;
    this.#isAsync = options.isAsync === true && fstatSync(fd).isFile();
    this.#options = options;
    if (open.size === 0) process.on("exit", onExit);
    open.add(this);
  }

  /**
   * Opens a file for appending, and creates missing folders. @throws the error of opening the file
   */
  static file(path: string, options: SinkOptions = {}): LineSink {
    mkdirSync(dirname(path), { recursive: true });
    return new LineSink(openFile(path), true, options, path);
  }

  /** Uses a standard stream of the process. */
  static stream({ fd }: { readonly fd: number }, options: SinkOptions = {}): LineSink {
    const own = reopened(fd);
    return new LineSink(own ?? fd, own !== undefined, options);
  }

  /** `text` is one or more complete lines. */
  write(text: string): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(text);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#fail(new Error("nothing reads the output"));
      this.#lost += linesOf(bytes);
      return;
    }
    this.#add(bytes);
    if (this.#timer === undefined && !this.#isWriting) this.#flush();
  }

  /**
   * Opens the file of the same name again, after the current one has been moved away; later lines
   * go there. No line is lost or split.
   * @throws the error of opening the file; the current file stays in use then
   */
  reopen(): void {
    if (this.#path === undefined || this.#isClosed) return;
    mkdirSync(dirname(this.#path), { recursive: true });
    const opened = openFile(this.#path);
    if (this.#next !== undefined) closeSync(this.#next);
    this.#next = opened;
    if (!this.#isWriting) this.#exchange();
  }

  /** Writes the waiting lines as long as the reader makes progress, and closes the file. */
  async close(): Promise<void> {
    let end = performance.now() + MAX_END_TIME;
    for (let left = this.#waitingBytes; left > 0 && performance.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY / 5));
      if (!this.#isWriting) this.#flush();
      if (this.#waitingBytes < left) end = performance.now() + MAX_END_TIME;
      left = this.#waitingBytes;
    }
    this.end();
  }

  /** Closes at once; waiting lines are lost. */
  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    open.delete(this);
    if (open.size === 0) process.off("exit", onExit);
    if (this.#isOwn && !this.#isWriting) closeSync(this.#fd);
    if (this.#next !== undefined) closeSync(this.#next);
  }

  /** Tries once more to write the waiting lines when the process exits. */
  exit(): void {
    const end = performance.now() + MAX_END_TIME;
    // The threads finish the write that they have started.
    if (this.#isWriting) this.#waitingBytes -= this.#waiting.shift()?.length ?? 0;
    this.#isWriting = false;
    const rest = this.#options.rest?.() ?? "";
    if (rest !== "") this.#add(Buffer.from(rest));
    for (;;) {
      this.#flushNow();
      if (this.#waitingBytes === 0 || performance.now() > end) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_DELAY / 5);
    }
  }

  /** Switches to the reopened file, but not within a line. */
  #exchange(): void {
    if (this.#next === undefined || (this.#isTorn && this.#waitingBytes > 0)) return;
    closeSync(this.#fd);
    this.#fd = this.#next;
    this.#next = undefined;
    this.#isTorn = false;
  }

  #add(bytes: Uint8Array): void {
    if (this.#isTorn && this.#waitingBytes === 0) {
      this.#isTorn = false;
      this.#add(Uint8Array.of(NEWLINE));
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isAsync) this.#flushInBackground();
    else this.#flushNow();
  }

  #flushNow(): void {
    while (this.#waiting.length > 0) {
      try {
        this.#written(writeSync(this.#fd, this.#waiting[0] as Uint8Array));
      } catch (error) {
        this.#refused(error as NodeJS.ErrnoException);
        return;
      }
    }
  }

  #flushInBackground(): void {
    const [bytes] = this.#waiting;
    if (bytes === undefined) return;
    this.#isWriting = true;
    write(this.#fd, bytes, (error, count) => {
      if (!this.#isWriting) return;
      this.#isWriting = false;
      if (this.#isClosed) closeSync(this.#fd);
      else if (error !== null) this.#refused(error);
      else {
        this.#written(count);
        this.#flushInBackground();
      }
    });
  }

  #written(count: number): void {
    const bytes = this.#waiting[0] as Uint8Array;
    this.#waitingBytes -= count;
    if (count > 0) this.#isTorn = bytes[count - 1] !== NEWLINE;
    if (count < bytes.length) this.#waiting[0] = bytes.subarray(count);
    else this.#waiting.shift();
    this.#exchange();
    const { failure: error, lost } = { failure: this.#failure, lost: this.#lost };
    if (error === undefined || this.#waitingBytes > 0) return;
    this.#failure = undefined;
    this.#lost = 0;
    this.#options.recovered?.(lost, error);
  }

  #refused(error: NodeJS.ErrnoException): void {
    if (error.code === "EAGAIN" || error.code === "EBUSY" || error.code === "EINTR") {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#flush(), RETRY_DELAY).unref();
      return;
    }
    for (const bytes of this.#waiting) this.#lost += linesOf(bytes);
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#exchange();
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#options.failed?.(error);
  }
}

/** All open sinks; one exit listener serves them. */
const open = new Set<LineSink>();
const onExit = () => {
  for (const sink of open) sink.exit();
};

function linesOf(bytes: Uint8Array): number {
  let lines = 0;
  for (const byte of bytes) if (byte === NEWLINE) lines += 1;
  return lines;
}

const openFile = (path: string) => openSync(path, isPipe(path) ? constants.O_RDWR | constants.O_NONBLOCK : "a");

/**
 * Returns true for a named pipe. It is opened for reading as well, so that opening never waits for
 * a reader and writing survives one that leaves.
 */
function isPipe(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFIFO() === true;
}

/**
 * Returns a descriptor of our own for a pipe or terminal, on which writes fail instead of blocking;
 * other users of the stream are not affected. Undefined for other files: Node has made sockets
 * non-blocking already.
 */
function reopened(fd: number): number | undefined {
  try {
    const stats = fstatSync(fd);
    if (!stats.isFIFO() && !stats.isCharacterDevice()) return undefined;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return undefined;
  }
}
