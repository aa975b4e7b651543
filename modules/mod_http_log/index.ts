/** Writes one line per request: JSON for machines, or short text on a terminal. */
import {
  isColored,
  isRpcPath,
  type QueryMode,
  shownQuery,
  shownReferer,
  shownText,
  tracedFields,
} from "../../core/http/index.ts";
import type { HttpFinishedEvent, Module } from "../../core/types.ts";
import { jsonLine } from "./line.ts";
import { options } from "./options.ts";

import { TerminalLines } from "./terminal.ts";
import { LineWriter } from "./writer.ts";

export { options };
export const global = true;

/** Milliseconds that a line may wait for others. On a terminal the delay must not be noticeable. */
const MAX_TERMINAL_DELAY = 20;
const MAX_FILE_DELAY = 500;

export default function load(module: Module): void {
  if (module.get_option_boolean("http_log") === false) return;
  const mode = module.get_option_enum<QueryMode>("http_log_query", options.http_log_query.values) ?? "redacted";
  const slow = (module.get_option_period("http_log_slow") ?? Number.POSITIVE_INFINITY) * 1000;
  const file = module.get_option_path("http_log_file");
  const terminal = file === undefined && onTerminal(module);
  const writer = openWriter(module, file, terminal ? MAX_TERMINAL_DELAY : MAX_FILE_DELAY);

  module.hook("logs-reopened", () => writer.reopen());

  const shown = (event: HttpFinishedEvent) => {
    const { request } = event;
    const agent = request.header("user-agent");
    const referer = request.header("referer");
    return {
      path: shownText(request.url.raw_path, mode),
      query: queryOf(event, mode),
      agent: agent === undefined ? undefined : shownText(agent, mode),
      referer: shownReferer(referer, mode),
      slow: event.duration > slow,
      traced: tracedFields(request),
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
  // Resources are released in reverse order, so the writer is still open here.
  module.on_release("lines on the terminal", () => lines.flush());
}

function queryOf({ request, app }: HttpFinishedEvent, mode: QueryMode): string | undefined {
  const { query } = request.url;
  if (query === undefined || app === "api" || isRpcPath(request.path)) return undefined;
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
        module.log.warn("Could not write the request log (%s); dropped lines: %d", message, lost);
      },
    });
    module.on_release("log of requests", () => writer.close());
    return writer;
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    throw new Error(`The file of the option http_log_file cannot be opened: ${reason}`, { cause: error });
  }
}
