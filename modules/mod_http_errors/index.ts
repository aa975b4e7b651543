/** Makes the error pages: small HTML, or JSON where the client prefers it. Answers `http-error` last of all hooks. */
import { STATUS_CODES } from "node:http";
import { addVary, preferredType } from "../../core/http/index.ts";
import type { HttpErrorEvent, Module } from "../../core/types.ts";
import { options } from "./options.ts";
import { htmlPage, jsonPage } from "./page.ts";
import { sentences } from "./sentences.ts";

export { options };
export const global = true;

export default function load(module: Module): void {
  const detailed = module.get_option_boolean("http_errors_detailed") ?? false;
  const fallback =
    module.get_option_string("http_errors_default_message") ?? options.http_errors_default_message.default;
  const own = module.get_option_object("http_errors_messages") ?? {};

  const page = ({ code, message, error, request, response }: HttpErrorEvent): string => {
    const text = {
      code,
      message,
      phrase: STATUS_CODES[code] ?? `Code ${code}`,
      sentence: String(own[code] ?? sentences[code] ?? fallback),
      id: code >= 500 ? request?.id : undefined,
      detail: detailed && error !== undefined ? detailOf(error) : undefined,
    };
    const json = preferredType(request?.headers.accept, ["html", "json"]) === "json";
    addVary(response.headers, "Accept");
    response.headers.content_type = `${json ? "application/json" : "text/html"}; charset=utf-8`;
    return json ? jsonPage(text) : htmlPage(text);
  };
  // Below 0, the priority of hooks that ask for none: any of them replaces the page.
  module.hook("http-error", page, -1);
}

function detailOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
