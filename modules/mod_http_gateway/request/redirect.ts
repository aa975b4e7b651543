/** Redirects of the gateway. */
import { escape_html } from "../../../core/net/http.ts";
import type { ResponseFields } from "../../../core/types.ts";

const words = {
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
} as const;

export type RedirectStatus = keyof typeof words;

/** Thrown where a request turns out to be meant for another address. */
export class Redirect {
  readonly status: RedirectStatus;
  /** As it stands in the header: escaped. */
  readonly location: string;

  constructor(status: RedirectStatus, location: string) {
    this.status = status;
    this.location = location;
  }

  answer(headers: ResponseFields["headers"] = {}): ResponseFields {
    return {
      status_code: this.status,
      headers: { ...headers, location: this.location, content_type: "text/html; charset=utf-8" },
      body: `<a href="${escape_html(this.location)}">${words[this.status]}</a>.\n`,
    };
  }
}
