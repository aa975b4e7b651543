/** Shows requests on a terminal: one line each, in columns, as long as a person can keep up. */
import { cutTo, padTo, painter, type Style } from "../../core/http/index.ts";
import { printable, size_text } from "../../core/net/http.ts";
import type { HttpFinishedEvent } from "../../core/types.ts";

/**
 * Maximum number of lines per second that a person can follow. In the second after a busier one,
 * only a few lines are shown.
 */
const MAX_LINES = 40;
const MAX_LINES_OF_BURST = 5;
/** Number of failures that are shown in addition. */
const MAX_FAILURES = 20;
const WINDOW_MS = 1000;

/** Width to which paths are padded, so that the next columns are aligned. */
const PATH_COLUMNS = 40;
const MIN_PATH_COLUMNS = 12;
const APP_COLUMNS = 14;

/** The parts of a request that may be shown. */
export interface ShownRequest {
  readonly path: string;
  readonly query: string | undefined;
  readonly slow: boolean;
}

/** Settings of the terminal. */
export interface TerminalSettings {
  readonly isColored: boolean;
  /** Width of the terminal in columns; undefined if it is unknown, so that nothing is cut. */
  width(): number | undefined;
}

/** Returns a line such as `12:34:56 GET /hello?a=1 200 3.1 ms 1.2 kB hello`. */
export function terminalLine(
  { request, status, bytes, duration, complete, app }: HttpFinishedEvent,
  { path, query, slow }: ShownRequest,
  { isColored, width }: TerminalSettings,
): string {
  const paint = painter(isColored);
  const [columns = Number.POSITIVE_INFINITY, left] = [width(), complete ? "" : "  client left"];
  const method = printable(request.method).padEnd(4);
  const numbers = `${timeText(duration).padStart(8)}  ${size_text(bytes).padStart(7)}`;
  const name = cutTo(printable(app ?? ""), APP_COLUMNS);
  // Width of time, status and the spaces between all columns. The end is omitted if it would leave
  // no room for the path.
  const taken = 8 + 1 + method.length + 2 + 2 + 3 + left.length;
  const ends = [`  ${numbers}  ${name}`, `  ${numbers}`, ""];
  const end = ends.find((each) => columns - taken - each.length >= MIN_PATH_COLUMNS) ?? "";
  const room = Math.max(MIN_PATH_COLUMNS, columns - taken - end.length);
  const target = cutTo(printable(path + (query === undefined ? "" : `?${query}`)), room);
  return `${[
    paint("dim", clock()),
    ` ${method}  `,
    padTo(target, Math.min(room, PATH_COLUMNS)),
    "  ",
    paint(statusColor(status), String(status || "---")),
    paint(slow ? "yellow" : "dim", end.trimEnd()),
    paint("yellow", left),
  ].join("")}\n`;
}

/**
 * Shows requests as they finish: all of them, or in busy seconds the first ones, the failures, and
 * a summary of the rest. Summarizing costs only a few additions.
 */
export class TerminalLines {
  readonly #settings: TerminalSettings;
  readonly #write: (text: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #allowed = MAX_LINES;
  #lines = 0;
  #failures = 0;
  #rest = nothing();

  constructor(settings: TerminalSettings, write: (text: string) => void) {
    this.#settings = settings;
    this.#write = write;
  }

  add(event: HttpFinishedEvent, shown: (event: HttpFinishedEvent) => ShownRequest): void {
    this.#timer ??= setTimeout(() => this.#next(), WINDOW_MS).unref();
    if (this.#hasRoom(event)) this.#write(terminalLine(event, shown(event), this.#settings));
    else this.#sum(event);
  }

  /** Shows the summary so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { requests, bytes, classes } = this.#rest;
    this.#rest = nothing();
    this.#allowed = requests > 0 ? MAX_LINES_OF_BURST : MAX_LINES;
    this.#lines = 0;
    this.#failures = 0;
    if (requests > 0) this.#write(this.#sumLine(requests, bytes, classes));
  }

  /** A burst ends when a second has had no more lines than can be shown. */
  #next(): void {
    this.flush();
    if (this.#allowed < MAX_LINES) this.#timer = setTimeout(() => this.#next(), WINDOW_MS).unref();
  }

  #hasRoom({ status }: HttpFinishedEvent): boolean {
    if (this.#lines < this.#allowed) this.#lines += 1;
    else if (isFailure(status) && this.#failures < MAX_FAILURES) this.#failures += 1;
    else return false;
    return true;
  }

  #sum({ status, bytes }: HttpFinishedEvent): void {
    const { classes } = this.#rest;
    this.#rest.requests += 1;
    this.#rest.bytes += bytes;
    const at = Math.trunc(status / 100);
    classes[at] = (classes[at] ?? 0) + 1;
  }

  #sumLine(requests: number, bytes: number, classes: readonly number[]): string {
    const paint = painter(this.#settings.isColored);
    const counts = classes.flatMap((count, at) => {
      if (count === 0) return [];
      return [paint(statusColor(at * 100), `${countText(count)} ${at === 0 ? "left" : `${at}xx`}`)];
    });
    const more = `… ${countText(requests)} more: `;
    return `${paint("dim", `${clock()} ${more}`)}${counts.join(", ")}${paint("dim", `, ${size_text(bytes)}`)}\n`;
  }
}

const nothing = () => ({ requests: 0, bytes: 0, classes: [0, 0, 0, 0, 0, 0] });

const isFailure = (status: number) => status >= 500 || status === 0;

const countText = (count: number) => count.toLocaleString("en");

const clock = () => new Date().toTimeString().slice(0, 8);

function timeText(ms: number): string {
  if (ms < 1000) return `${ms.toFixed(1)} ms`;
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

function statusColor(status: number): Style {
  if (isFailure(status)) return "red";
  if (status >= 400) return "yellow";
  return status >= 300 ? "cyan" : "green";
}
