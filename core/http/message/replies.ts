/** Creates complete responses for handlers to return, each with its content type. */
import type { HtmlResult, ReplyOptions, ResponseFields, ResponseHeaders } from "../../types.ts";
import { escape_html } from "../../util/text.ts";

/** A global symbol, so that templates of one copy of the package fit into those of another. */
const htmlBrand = Symbol.for("modhost.html");

/** Browsers must use these bodies only as the declared type. */
const nosniff = { x_content_type_options: "nosniff" };

/**
 * Returns a response with plain text in UTF-8. Browsers show it unchanged, whatever it contains.
 * @throws {TypeError} `body` is not a string
 */
export function text(body: string, options?: ReplyOptions): ResponseFields {
  if (typeof body !== "string") throw new TypeError(`text() takes a string, not ${article(body)}: use String(value)`);
  return reply(body, "text/plain; charset=utf-8", options);
}

/**
 * Returns a JSON response.
 * @throws {TypeError} JSON has no form for the value: a function, undefined, a bigint, or an object
 * that contains itself
 */
export function json(value: unknown, options?: ReplyOptions): ResponseFields {
  const body = JSON.stringify(value) as string | undefined;
  if (body === undefined) throw new TypeError(`json() takes what JSON can hold, not ${article(value)}`);
  return reply(body, "application/json", options);
}

/**
 * A template tag that returns an HTML response: html`<p>Hello, ${name}</p>`. Values are escaped for
 * content and for quoted attributes. The result of another html`...` is inserted unchanged, the
 * items of an array one after the other, and `undefined`, `null` and `false` as nothing. Escaping
 * is not enough within `<script>`, `<style>` and unquoted attributes: put no values there. For
 * another status: `{ ...html`...`, status_code: 404 }`.
 * @throws {TypeError} it was called as a function
 */
export function html(pieces: TemplateStringsArray, ...values: readonly unknown[]): HtmlResult {
  if (!Array.isArray(pieces?.raw))
    throw new TypeError("html is a template tag: write html`<p>...</p>`, without brackets");
  return new HtmlReply(pieces.reduce((page, piece, at) => page + markup(values[at - 1]) + piece));
}

/**
 * Returns a response that redirects the client. The default status 303 makes browsers GET the
 * location, also after a form was posted; the others are 301, 302, 307 and 308. A relative location
 * is resolved against the path of the request. Characters that a header cannot carry are
 * percent-encoded. Check a location that comes from outside before you redirect to it.
 * @throws {RangeError} `status_code` is not a status of a redirect
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

class HtmlReply implements HtmlResult {
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
