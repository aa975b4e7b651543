/** A line on a terminal that shows the progress of long work. */
import { size_text } from "../util/text.ts";

/** Milliseconds between two drawings. */
const MIN_DRAW_INTERVAL_MS = 100;

export class Progress {
  readonly #stream: NodeJS.WriteStream;
  readonly #total: number | undefined;
  readonly #text: (count: number) => string;
  readonly #started = performance.now();
  #drawn = 0;
  #shown = false;

  /**
   * `total` is undefined if it is not known. Both counts are in bytes, unless `text` formats
   * another unit.
   */
  constructor(stream: NodeJS.WriteStream, total: number | undefined, text: (count: number) => string = size_text) {
    this.#stream = stream;
    this.#total = total;
    this.#text = text;
  }

  /** Shows how much is done of the total. */
  show(done: number): void {
    this.#draw((now) => this.#line(done, (now - this.#started) / 1000));
  }

  /** Shows the progress as a text. */
  showText(line: string): void {
    this.#draw(() => line);
  }

  #draw(line: (now: number) => string): void {
    const now = performance.now();
    if (now - this.#drawn < MIN_DRAW_INTERVAL_MS) return;
    this.#drawn = now;
    this.#shown = true;
    this.#stream.write(`\r${line(now)}\x1b[K`);
  }

  /** Clears the line, so that something else can be written. */
  clear(): void {
    if (this.#shown) this.#stream.write("\r\x1b[K");
    this.#shown = false;
  }

  #line(done: number, seconds: number): string {
    const speed = seconds > 0.5 ? `  ${this.#text(done / seconds)}/s` : "";
    const total = this.#total;
    if (total === undefined || total === 0) return ` ${this.#text(done)}${speed}`;
    const part = Math.min(1, done / total);
    const width = Math.max(10, Math.min(40, (this.#stream.columns || 80) - 48));
    const full = Math.round(part * width);
    const bar = `[${"=".repeat(full)}${" ".repeat(width - full)}]`;
    const left = seconds > 1 && part > 0 ? `  ${Math.ceil((seconds * (1 - part)) / part)} s left` : "";
    return ` ${this.#text(done)} / ${this.#text(total)} ${bar} ${Math.floor(part * 100)}%${speed}${left}`;
  }
}
