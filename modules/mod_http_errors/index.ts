/** Makes the error pages: small HTML, or JSON or a line of text where the client prefers it. Answers `http-error` last of all hooks. */

import { addVary, preferredType, stackOf } from "../../core/http/index.ts";
import { status_codes } from "../../core/net/http.ts";
import type { HttpErrorEvent, Module } from "../../core/types.ts";
import { options } from "./options.ts";
import { type ErrorText, htmlPage, jsonPage, textPage } from "./page.ts";
import { sentences } from "./sentences.ts";

export { options };
export const global = true;

/** The forms of a page, the one that clients without a preference get first. */
const forms: Readonly<Record<"html" | "json" | "text", { type: string; make: (text: ErrorText) => string }>> = {
  html: { type: "text/html", make: htmlPage },
  json: { type: "application/json", make: jsonPage },
  text: { type: "text/plain", make: textPage },
};

export default function load(module: Module): void {
  const detailed = module.get_option_boolean("http_errors_detailed") ?? false;
  const fallback =
    module.get_option_string("http_errors_default_message") ?? options.http_errors_default_message.default;
  const own = module.get_option_object("http_errors_messages") ?? {};

  const page = ({ code, message, error, request, response }: HttpErrorEvent): string => {
    const text = {
      code,
      message,
      phrase: status_codes[code] ?? `Code ${code}`,
      sentence: String(own[code] ?? sentences[code] ?? fallback),
      id: code >= 500 ? request?.id : undefined,
      detail: detailed && error !== undefined ? stackOf(error) : undefined,
    };
    const { type, make } = forms[preferredType(request?.headers.accept, ["html", "json", "text"])];
    addVary(response.headers, "Accept");
    response.headers.content_type = `${type}; charset=utf-8`;
    return make(text);
  };
  // Below 0, the priority of hooks that ask for none: any of them replaces the page.
  module.hook("http-error", page, -1);
}
