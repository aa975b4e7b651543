/** Where logs go: a file, or a standard stream, that may be full, unread or gone without anybody being held up. */
import { closeSync, constants, fstatSync, mkdirSync, openSync, statSync, write, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Bytes that wait for a reader or a disk that does not keep up; what comes beyond them is dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Milliseconds between attempts while nobody reads. */
const RETRY_DELAY = 50;
/** Milliseconds that the end waits for whoever reads, and goes on waiting for who does. */
const MAX_END_TIME = 1000;
const NEWLINE = 10;

export interface SinkOptions {
  /** Lines are written by threads beside this one, and not before `write` returns. Of files alone. */
  readonly isAsync?: boolean;
  /** Gives the lines that its user has kept back, when the process ends. */
  rest?(): string;
  /** Hears once that lines are being lost. */
  failed?(error: Error): void;
  /** Hears that writing works again, and how many lines were lost meanwhile. */
  recovered?(lost: number, error: Error): void;
}

/**
 * Writes lines, in order, to a file or a standard stream. Never throws, and waits for no reader: lines that cannot be
 * written are dropped and counted, and the first that can be written again comes with that count.
 */
export class LineSink {
  #fd: number;
  /** Of a file that was opened again: it takes the place of the other one between two pieces. */
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
  /** The last byte written ended no line: what was to follow it is lost. */
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

  /** Opens a file for appending; folders on the way are made. @throws what opening a file throws */
  static file(path: string, options: SinkOptions = {}): LineSink {
    mkdirSync(dirname(path), { recursive: true });
    return new LineSink(openFile(path), true, options, path);
  }

  /** A standard stream of the process. */
  static stream({ fd }: { readonly fd: number }, options: SinkOptions = {}): LineSink {
    const own = reopened(fd);
    return new LineSink(own ?? fd, own !== undefined, options);
  }

  /** `text` is one line or more, each with its end. */
  write(text: string): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(text);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#fail(new Error("nobody takes in what is written"));
      this.#lost += linesOf(bytes);
      return;
    }
    this.#add(bytes);
    if (this.#timer === undefined && !this.#isWriting) this.#flush();
  }

  /**
   * Opens the file of the same name again: what is written from now on goes there, when the one that was open has been
   * moved away. No line is lost or torn in two by it.
   * @throws what opening a file throws: what was open goes on then
   */
  reopen(): void {
    if (this.#path === undefined || this.#isClosed) return;
    mkdirSync(dirname(this.#path), { recursive: true });
    const opened = openFile(this.#path);
    if (this.#next !== undefined) closeSync(this.#next);
    this.#next = opened;
    if (!this.#isWriting) this.#exchange();
  }

  /** Writes what waits, for as long as a reader may need for it, and closes what was opened here. */
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

  /** Closes at once; what waits is lost. */
  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    open.delete(this);
    if (open.size === 0) process.off("exit", onExit);
    if (this.#isOwn && !this.#isWriting) closeSync(this.#fd);
    if (this.#next !== undefined) closeSync(this.#next);
  }

  /** What waits when the process ends gets a last chance. */
  exit(): void {
    const end = performance.now() + MAX_END_TIME;
    // The threads finish what they have begun.
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

  /** The rest of a line belongs where it has begun. */
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
    if (this.#isAsync) this.#flushBeside();
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

  #flushBeside(): void {
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
        this.#flushBeside();
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

/** Those that are open: one listener serves all of them. */
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

/** A named pipe is opened for reading, too: that waits for no reader, and outlives one that leaves. */
function isPipe(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFIFO() === true;
}

/**
 * A descriptor of our own for a pipe or terminal, on which a write gives up where it would have to wait; others that use
 * the same one do not notice. Undefined where there is none: sockets do not wait by what Node has set.
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
