/** Responds to a refused request with a line of text, or with a page for browsers. */
import { escape_html, html_page, page_style, printable } from "../../../core/net/http.ts";
import type { HttpRequest, ResponseFields } from "../../../core/types.ts";
import { pagePolicy } from "../page/policy.ts";
import type { GatewaySettings } from "../settings.ts";
import type { Refusal } from "./refusal.ts";

// An import of `node:http` makes Node load its fetch client.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

export function refusalResponse(
  refusal: Refusal,
  request: Pick<HttpRequest, "header">,
  { headers: own, htmlErrors }: Pick<GatewaySettings, "headers" | "htmlErrors">,
): ResponseFields {
  const { status, message } = refusal;
  const headers = { ...own, x_content_type_options: "nosniff", ...refusal.headers };
  if (!htmlErrors || request.header("accept")?.includes("text/html") !== true) {
    return {
      status_code: status,
      headers: { ...headers, content_type: "text/plain; charset=utf-8" },
      body: `${printable(message)}\n`,
    };
  }
  const guards = { content_type: "text/html; charset=utf-8", content_security_policy: pagePolicy(style) };
  return { status_code: status, headers: { ...headers, ...guards }, body: errorPage(status, message) };
}

const style = `${page_style}
main { max-width: 40rem; margin: 0 auto; padding: 16vh 1.5rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: 1.375rem; font-weight: 600; }
h1 b { margin-right: .625rem; color: var(--soft); font-weight: 400; font-variant-numeric: tabular-nums; }
p { margin: 0 0 .75rem; }
.why { color: var(--soft); font-size: .9375rem; }
`;

/** Advice for people, by status. */
const advice: Readonly<Record<number, string>> = {
  400: "The address of content is /ipfs/CID or /ipns/NAME, optionally with a path. Is the address complete?",
  404: "The server does not have it, or it was never part of this directory.",
  406: "This server has the content, but not in the requested format.",
  410: "This server must not provide it.",
  412: "The request asked for it only if the server has it already.",
  429: "The server has more requests than it allows. Try again in a minute.",
  451: "It must not be provided here for legal reasons.",
  500: "The content cannot be read, or its name does not resolve.",
  501: "The address leads to a value inside a document, which has no page of its own.",
  504: "No peer has sent it in time. Try again later.",
};

function errorPage(status: number, message: string): string {
  const phrase = STATUS_CODES[status] ?? "Error";
  const hint = advice[status];
  const body = [
    `<h1><b>${status}</b>${escape_html(phrase)}</h1>`,
    hint === undefined ? "" : `<p>${escape_html(hint)}</p>`,
    `<p class="why">${escape_html(printable(message))}</p>`,
  ];
  return html_page({ title: `${status} ${phrase}`, style, body: body.join("\n") });
}
