/** Redirects of the gateway. */
import { escape_html } from "../../../core/net/http.ts";
import type { ResponseFields } from "../../../core/types.ts";

const words = { 301: "Moved Permanently", 302: "Found" } as const;

/** Thrown where a request turns out to be meant for another address. */
export class Redirect {
  readonly status: keyof typeof words;
  /** As it stands in the header: escaped. */
  readonly location: string;

  constructor(status: keyof typeof words, location: string) {
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
