/**
 * Makes the error pages: small HTML, or JSON or a line of text if the client prefers that. It is
 * the last of all `http-error` hooks.
 */

import { addVary, preferredType, stackOf } from "../../core/http/index.ts";
import { status_codes } from "../../core/net/http.ts";
import type { HttpErrorEvent, Module } from "../../core/types.ts";
import { options } from "./options.ts";
import { type ErrorText, htmlPage, jsonPage, textPage } from "./page.ts";
import { sentences } from "./sentences.ts";

export { options };
export const global = true;

type FormName = "html" | "json" | "text";

const forms: Readonly<Record<FormName, { type: string; make: (text: ErrorText) => string }>> = {
  html: { type: "text/html; charset=utf-8", make: htmlPage },
  json: { type: "application/json; charset=utf-8", make: jsonPage },
  text: { type: "text/plain; charset=utf-8", make: textPage },
};
/** Clients without a preference get the first format. */
const formFor = preferredType<FormName>("html", "json", "text");

export default function load(module: Module): void {
  const detailed = module.get_option_boolean("http_errors_detailed") ?? false;
  const fallback =
    module.get_option_string("http_errors_default_message") ?? options.http_errors_default_message.default;
  const own = module.get_option_object("http_errors_messages") ?? {};

  /** The text of a page without details of the request. */
  const plain = (code: number): ErrorText => ({
    code,
    phrase: status_codes[code] ?? `Code ${code}`,
    sentence: String(own[code] ?? sentences[code] ?? fallback),
    message: undefined,
    id: undefined,
    detail: undefined,
  });
  /** Pages that are the same for all requests, by format and code. */
  const made = new Map<FormName, Map<number, string>>();

  const plainPage = (form: FormName, code: number): string => {
    let pages = made.get(form);
    if (pages === undefined) made.set(form, (pages = new Map()));
    let page = pages.get(code);
    if (page === undefined) pages.set(code, (page = forms[form].make(plain(code))));
    return page;
  };

  const page = ({ code, message, error, request, response }: HttpErrorEvent): string => {
    const form = formFor(request?.header("accept"));
    addVary(response.headers, "Accept");
    response.headers.content_type = forms[form].type;
    const id = code >= 500 ? request?.id : undefined;
    const detail = detailed && error !== undefined ? stackOf(error) : undefined;
    if (message === undefined && id === undefined && detail === undefined) return plainPage(form, code);
    return forms[form].make({ ...plain(code), message, id, detail });
  };
  // The priority is below 0, the default of hooks, so any other hook replaces the page.
  module.hook("http-error", page, -1);
}
