/** Writes a line a request: JSON for machines, or short text on a terminal. */
import { isColored } from "../../core/http/index.ts";
import type { HttpFinishedEvent, Module } from "../../core/types.ts";
import { jsonLine } from "./line.ts";
import { options } from "./options.ts";
import { type QueryMode, shownQuery, shownReferer, shownText } from "./query.ts";
import { TerminalLines } from "./terminal.ts";
import { LineWriter } from "./writer.ts";

export { options };
export const global = true;

/** Milliseconds that a line may wait for others: a person who watches should not notice. */
const MAX_TERMINAL_DELAY = 20;
const MAX_FILE_DELAY = 500;

/** Query strings of the RPC carry keys: they are never logged, whatever the options say. */
const rpcPath = /^\/api\/v0(?:\/|$)/;

export default function load(module: Module): void {
  if (module.get_option_boolean("http_log") === false) return;
  const mode = module.get_option_enum<QueryMode>("http_log_query", options.http_log_query.values) ?? "redacted";
  const slow = (module.get_option_period("http_log_slow") ?? Number.POSITIVE_INFINITY) * 1000;
  const file = module.get_option_path("http_log_file");
  const terminal = file === undefined && onTerminal(module);
  const writer = openWriter(module, file, terminal ? MAX_TERMINAL_DELAY : MAX_FILE_DELAY);

  module.hook("logs-reopened", () => writer.reopen());

  const shown = (event: HttpFinishedEvent) => {
    const { headers, url } = event.request;
    return {
      path: shownText(url.raw_path, mode),
      query: queryOf(event, mode),
      agent: headers.user_agent === undefined ? undefined : shownText(headers.user_agent, mode),
      referer: shownReferer(headers.referer, mode),
      slow: event.duration > slow,
    };
  };
  if (!terminal) {
    module.hook("http-finished", (event: HttpFinishedEvent) => writer.write(jsonLine(event, shown(event))));
    return;
  }
  const { stdout } = process;
  const lines = new TerminalLines({ isColored: isColored(stdout), width: () => stdout.columns || undefined }, (text) =>
    writer.write(text),
  );
  module.hook("http-finished", (event: HttpFinishedEvent) => lines.add(event, shown));
  // What is released last was opened first: the writer is still open.
  module.on_release("lines on the terminal", () => lines.flush());
}

function queryOf({ request, app }: HttpFinishedEvent, mode: QueryMode): string | undefined {
  const { query } = request.url;
  if (query === undefined || app === "api" || rpcPath.test(request.path)) return undefined;
  return shownQuery(query, mode);
}

function onTerminal(module: Module): boolean {
  const format = module.get_option_string("log_format") ?? "auto";
  return format === "pretty" || (format === "auto" && process.stdout.isTTY === true);
}

function openWriter(module: Module, file: string | undefined, delay: number): LineWriter {
  try {
    const writer = new LineWriter(file, delay, {
      failed: ({ message }) => module.set_status("error", `The log of requests cannot be written: ${message}`),
      recovered: (lost, { message }) => {
        module.set_status("info", "The log of requests is written again");
        module.log.warn("The log of requests could not be written (%s): %d lines were dropped", message, lost);
      },
    });
    module.on_release("log of requests", () => writer.close());
    return writer;
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    throw new Error(`The file of the option http_log_file cannot be opened: ${reason}`, { cause: error });
  }
}
