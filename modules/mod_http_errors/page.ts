import { escape_html, html_page, page_style } from "../../core/net/http.ts";

/** The content of an error page. */
export interface ErrorText {
  readonly code: number;
  readonly phrase: string;
  readonly sentence: string;
  /** The message of the code that refused the request. It can have any form. */
  readonly message: string | undefined;
  /** The request's id in the log. */
  readonly id: string | undefined;
  readonly detail: string | undefined;
}

const style = `${page_style}
main { max-width: 36rem; margin: 0 auto; padding: 18vh 1.5rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: 1.375rem; font-weight: 600; }
h1 b { margin-right: .625rem; color: var(--soft); font-weight: 400; font-variant-numeric: tabular-nums; }
p { margin: 0 0 .75rem; }
pre { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .375rem; overflow-x: auto; font-size: .8125rem; }
footer { margin-top: 1.5rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem; }
`;

export function htmlPage({ code, phrase, sentence, message, id, detail }: ErrorText): string {
  const parts = [`<h1><b>${code}</b>${escape_html(phrase)}</h1>`, `<p>${escape_html(sentence)}</p>`];
  if (message !== undefined) parts.push(`<p>${escape_html(message)}</p>`);
  if (detail !== undefined) parts.push(`<pre>${escape_html(detail)}</pre>`);
  if (id !== undefined) parts.push(`<footer>Request ${escape_html(id)}</footer>`);
  return html_page({ title: `${code} ${phrase}`, style, body: parts.join("\n") });
}

/** Returns the content as a JSON object, without fields that have no value. */
export function jsonPage({ code, phrase, sentence, message, id, detail }: ErrorText): string {
  return `${JSON.stringify({ code, error: phrase, message: message ?? sentence, id, detail })}\n`;
}

/**
 * Returns one line: `404 Not Found: There is nothing at this address.` Details follow on their own
 * lines.
 */
export function textPage({ code, phrase, sentence, message, id, detail }: ErrorText): string {
  const request = id === undefined ? "" : ` (request ${id})`;
  return `${code} ${phrase}: ${message ?? sentence}${request}\n${detail === undefined ? "" : `${detail}\n`}`;
}
