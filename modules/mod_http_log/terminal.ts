/** Requests as people see them on a terminal: a line for each, in columns, as long as anybody could read along. */
import { cutTo, padTo, painter, type Style } from "../../core/http/index.ts";
import { printable, size_text } from "../../core/net/http.ts";
import type { HttpFinishedEvent } from "../../core/types.ts";

/** Lines a second that people can follow; in a second behind one that had more of them, they cannot. */
const MAX_LINES = 40;
const MAX_LINES_OF_BURST = 5;
/** Failures that are shown beyond them. */
const MAX_FAILURES = 20;
const WINDOW_MS = 1000;

/** Columns that paths are padded to, so that what follows stands below each other. */
const PATH_COLUMNS = 40;
const MIN_PATH_COLUMNS = 12;
const APP_COLUMNS = 14;

/** What of a request may be shown. */
export interface ShownRequest {
  readonly path: string;
  readonly query: string | undefined;
  readonly slow: boolean;
}

/** What the lines are made for. */
export interface TerminalSettings {
  readonly isColored: boolean;
  /** Of the terminal, in columns; undefined where nobody knows: nothing is cut then. */
  width(): number | undefined;
}

/** `12:34:56 GET  /hello?a=1   200   3.1 ms  1.2 kB  hello`. */
export function terminalLine(
  { request, status, bytes, duration, complete, app }: HttpFinishedEvent,
  { path, query, slow }: ShownRequest,
  { isColored, width }: TerminalSettings,
): string {
  const paint = painter(isColored);
  const [columns = Number.POSITIVE_INFINITY, left] = [width(), complete ? "" : "  client left"];
  const method = printable(request.method).padEnd(4);
  const figures = `${timeText(duration).padStart(8)}  ${size_text(bytes).padStart(7)}`;
  const name = cutTo(printable(app ?? ""), APP_COLUMNS);
  // Time, status and the spaces between all columns; the end is left out where it would leave no room for the path.
  const taken = 8 + 1 + method.length + 2 + 2 + 3 + left.length;
  const ends = [`  ${figures}  ${name}`, `  ${figures}`, ""];
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
 * The lines of requests as they come: all of them, or the first of a second, its failures, and at its end a sum of the
 * others. What is summed up costs a few additions.
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

  /** Tells what was summed up until now. */
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

  /** A burst goes on until a second has had no more lines than can be shown. */
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
