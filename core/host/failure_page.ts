/**
 * The page that browsers on this machine get instead of an app whose reload failed, while its files
 * are watched.
 */
import type { IncomingMessage } from "node:http";
import { isForwarded, isLoopback } from "../http/policy/local_caller.ts";
import type { Change } from "../types.ts";
import { escape_html, html_page, printable } from "../util/text.ts";

/** The parts of a request that identify a local browser. */
type PageRequest = {
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly socket: { readonly remoteAddress?: string | undefined };
};

const style = `
:root { --text: #1d2126; --soft: #667080; --line: #e3e6ea; --page: #fff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7eb; --soft: #97a1ae; --line: #2b3139; --page: #14171b; --bad: #ff8a80; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 52rem; margin: 0 auto; padding: 10vh 1.5rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: 1.375rem; font-weight: 600; color: var(--bad); }
pre { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .375rem; overflow-x: auto; font-size: .875rem; }
pre b { color: var(--soft); font-weight: 400; }
footer { margin-top: 1.5rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .875rem; }
`;

/**
 * Returns true if a browser on this machine navigates to a page: sources are shown to nobody else.
 */
export function showsFailures({ headers, rawHeaders, socket }: PageRequest): boolean {
  if (headers.accept?.includes("text/html") !== true) return false;
  const mode = headers["sec-fetch-mode"];
  if (mode !== undefined && mode !== "navigate") return false;
  return isLoopback(socket.remoteAddress?.replace(/^::ffff:/, "") ?? "") && !isForwarded({ rawHeaders });
}

/** Returns text of modules with control characters made visible; line breaks stay. */
function shown(text: string): string {
  return text.split("\n").map(printable).map(escape_html).join("\n");
}

/**
 * Returns the page with the failed changes, each with its file, line and source line. The page
 * reloads itself.
 */
export function failurePage(changes: readonly Change[]): string {
  const body = changes.flatMap(({ what, error }) => {
    const { message = "", place: position } = error ?? {};
    const source = position?.text === undefined ? "" : `\n\n<b>${position.line} |</b> ${shown(position.text)}`;
    const where = position === undefined ? "" : `<b>${shown(position.file)}:${position.line}</b>`;
    return [
      `<h1>${shown(what)} has failed</h1>`,
      `<p>${shown(message)}</p>`,
      ...(position === undefined ? [] : [`<pre>${where}${source}</pre>`]),
    ];
  });
  const note = "The previous version still serves other programs. Fix the file and save it again.";
  const page = html_page({ title: "Failed to reload", style, body: [...body, `<footer>${note}</footer>`].join("\n") });
  return page.replace("</head>", '<meta http-equiv="refresh" content="1">\n</head>');
}
