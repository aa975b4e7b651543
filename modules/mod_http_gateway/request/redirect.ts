/** Redirects of the gateway. */
import { escape_html } from "../../../core/net/http.ts";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";

const words = {
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
} as const;

export type RedirectStatus = keyof typeof words;

/** Thrown if a request is meant for another URL. */
export class Redirect {
  readonly status: RedirectStatus;
  /** The escaped value of the Location header. */
  readonly location: string;
  readonly #headers: ResponseHeaders;

  constructor(status: RedirectStatus, location: string, headers: ResponseHeaders = {}) {
    this.status = status;
    this.location = location;
    this.#headers = headers;
  }

  /**
   * Names of request headers on which the redirect depends: other values of them get another
   * response at the same URL.
   */
  depending(vary: string): Redirect {
    return new Redirect(302, this.location, { vary, cache_control: "no-store" });
  }

  response(headers: ResponseFields["headers"] = {}): ResponseFields {
    return {
      status_code: this.status,
      headers: { ...headers, ...this.#headers, location: this.location, content_type: "text/html; charset=utf-8" },
      body: `<a href="${escape_html(this.location)}">${words[this.status]}</a>.\n`,
    };
  }
}
