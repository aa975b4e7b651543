/** Whole answers for handlers to return, each with the content type of what it holds. */
import type { HtmlAnswer, ReplyOptions, ResponseFields, ResponseHeaders } from "../types.ts";
import { escape_html } from "../util/text.ts";

/** The same in every copy of the package, so that templates of one fit into those of another. */
const htmlBrand = Symbol.for("modhost.html");

/** Browsers take these bodies for what they are declared as, and for nothing else. */
const nosniff = { x_content_type_options: "nosniff" };

/**
 * An answer of plain text, in UTF-8: browsers show it as it is, whatever it holds.
 * @throws {TypeError} `body` is not a string
 */
export function text(body: string, options?: ReplyOptions): ResponseFields {
  if (typeof body !== "string") throw new TypeError(`text() takes a string, not ${article(body)}: use String(value)`);
  return reply(body, "text/plain; charset=utf-8", options);
}

/**
 * An answer of JSON.
 * @throws {TypeError} JSON has no form for the value: a function, undefined, a bigint, or an object within itself
 */
export function json(value: unknown, options?: ReplyOptions): ResponseFields {
  const body = JSON.stringify(value) as string | undefined;
  if (body === undefined) throw new TypeError(`json() takes what JSON can hold, not ${article(value)}`);
  return reply(body, "application/json", options);
}

/**
 * A template tag that makes an HTML answer: html`<p>Hello, ${name}</p>`. Values are escaped for content and for quoted
 * attributes; what another html`...` made goes in as it is, the items of an array one after the other, and `undefined`,
 * `null` and `false` as nothing. Within `<script>`, `<style>` and unquoted attributes no escaping is enough: put no
 * values there. For another status: `{ ...html`...`, status_code: 404 }`.
 * @throws {TypeError} it was called as a function
 */
export function html(pieces: TemplateStringsArray, ...values: readonly unknown[]): HtmlAnswer {
  if (!Array.isArray(pieces?.raw))
    throw new TypeError("html is a template tag: write html`<p>...</p>`, without brackets");
  return new HtmlReply(pieces.reduce((page, piece, at) => page + markup(values[at - 1]) + piece));
}

/**
 * An answer that sends the client to another place: 303, with which browsers GET it after a form was posted, too; or
 * 301, 302, 307, 308. A relative location counts from the path of the request. Characters that a header cannot carry are
 * percent-encoded; check a location that comes from outside before you send people there.
 * @throws {RangeError} `status_code` is no redirect
 */
export function redirect(location: string | URL, status_code = 303): ResponseFields {
  if (![301, 302, 303, 307, 308].includes(status_code)) {
    throw new RangeError(`redirect() takes the status 301, 302, 303, 307 or 308, not ${status_code}`);
  }
  const encoded = String(location)
    .toWellFormed()
    .replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  return { status_code, headers: { location: encoded } };
}

class HtmlReply implements HtmlAnswer {
  readonly status_code = 200;
  readonly headers: ResponseHeaders = { content_type: "text/html; charset=utf-8", ...nosniff };
  readonly body: string;

  constructor(body: string) {
    this.body = body;
  }

  get [htmlBrand](): true {
    return true;
  }
}

function markup(value: unknown): string {
  if (value === undefined || value === null || value === false) return "";
  if (Array.isArray(value)) return value.map(markup).join("");
  if (typeof value === "object" && htmlBrand in value) return (value as HtmlReply).body;
  return escape_html(String(value));
}

function reply(body: string, content_type: string, { status_code = 200, headers }: ReplyOptions = {}): ResponseFields {
  return { status_code, headers: { content_type, ...nosniff, ...headers }, body };
}

function article(value: unknown): string {
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (kind === "null" || kind === "undefined") return kind;
  return `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`;
}
