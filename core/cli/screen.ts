/** A full-screen display that is redrawn until the user leaves. */
import type { CommandContext } from "./command.ts";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const END_OF_LINE = "\u001b[K";
const END_OF_SCREEN = "\u001b[J";
/** Keys that end it: q, Ctrl+C, Ctrl+D, Escape by itself. */
const leaving = new Set(["q", "Q", "\u0003", "\u0004", "\u001b"]);
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

type Keyboard = CommandContext["stdin"] & { setRawMode?(isRaw: boolean): unknown };

/**
 * Takes over the terminal until `close`, which restores it. `left` aborts when a key or a signal
 * ends the display.
 */
export class Screen {
  readonly left: AbortSignal;
  readonly #leave = new AbortController();
  readonly #stdout: NodeJS.WriteStream;
  readonly #stdin: Keyboard;
  #lines: (width: number) => readonly string[] = () => [];

  constructor({ stdout, stdin }: Pick<CommandContext, "stdout" | "stdin">) {
    this.left = this.#leave.signal;
    this.#stdout = stdout;
    this.#stdin = stdin;
    stdout.write(ENTER);
    stdout.on("resize", this.#redraw);
    for (const signal of signals) process.on(signal, this.#end);
    if (stdin.isTTY !== true) return;
    this.#stdin.setRawMode?.(true);
    stdin.on("data", this.#key);
    stdin.resume();
  }

  /** Shows as many of these lines as fit, now and whenever the terminal changes its size. */
  draw(lines: (width: number) => readonly string[]): void {
    this.#lines = lines;
    this.#redraw();
  }

  close(): void {
    const stdin = this.#stdin;
    const stdout = this.#stdout;
    stdout.off("resize", this.#redraw);
    for (const signal of signals) process.off(signal, this.#end);
    if (stdin.isTTY === true) {
      stdin.off("data", this.#key);
      stdin.setRawMode?.(false);
      stdin.pause();
    }
    stdout.write(LEAVE);
  }

  readonly #end = () => this.#leave.abort();

  readonly #key = (typed: unknown) => {
    if (leaving.has(String(typed))) this.#end();
  };

  readonly #redraw = () => {
    const { columns = 80, rows = 24 } = this.#stdout;
    const shown = this.#lines(columns).slice(0, rows);
    this.#stdout.write(`${HOME}${shown.map((line) => line + END_OF_LINE).join("\r\n")}${END_OF_SCREEN}`);
  };
}
