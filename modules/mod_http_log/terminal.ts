import { printable, size_text } from "../../core/net/http.ts";
import type { HttpFinishedEvent } from "../../core/types.ts";

const colors = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2 } as const;

/** "12:34:56 GET /hello?a=1 200 1.2 kB 3.1 ms", in colour. */
export function terminalLine(
  event: HttpFinishedEvent,
  { path, query, slow }: { readonly path: string; readonly query: string | undefined; readonly slow: boolean },
): string {
  const { request, status, bytes, duration, complete } = event;
  const target = printable(path + (query === undefined ? "" : `?${query}`));
  const time = new Date().toTimeString().slice(0, 8);
  const took = `${duration.toFixed(1)} ms`;
  const words = [
    paint("dim", time),
    printable(request.method),
    target,
    paint(statusColor(status), String(status || "---")),
    paint("dim", size_text(bytes)),
    slow ? paint("yellow", took) : paint("dim", took),
  ];
  if (!complete) words.push(paint("yellow", "client left"));
  return `${words.join(" ")}\n`;
}

function statusColor(status: number): keyof typeof colors {
  if (status >= 500 || status === 0) return "red";
  if (status >= 400) return "yellow";
  return status >= 300 ? "cyan" : "green";
}

function paint(color: keyof typeof colors, text: string): string {
  return `\u001b[${colors[color]}m${text}\u001b[0m`;
}
