/** The HTML page of a document: its content and its links. */
import { escape_html, html_page, page_style, printable, size_text } from "../../../core/net/http.ts";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { type ContentTarget, escapedPath, visiblePath } from "../content_target.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { pagePolicy } from "../page/policy.ts";
import type { Found } from "../resolve.ts";

/** Increased whenever the page changes. */
const PAGE_VERSION = 1;
/** Maximum number of characters that are shown, and of links. */
const MAX_TEXT = 64 * 1024;
const MAX_LINKS = 1000;

export const documentPageTag = ({ text }: Pick<Found, "text">): string => `"DagIndex-${PAGE_VERSION}_CID-${text}"`;

const style = `${page_style}
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1.5rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .25rem; font-size: 1.25rem; font-weight: 600; }
h1 small { color: var(--soft); font-size: inherit; font-weight: 400; }
h2 { margin: 1.5rem 0 .5rem; font-size: 1rem; font-weight: 600; }
p { margin: 0 0 .75rem; color: var(--soft); font-size: .875rem; }
pre { margin: 0; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .375rem; white-space: pre-wrap; font-size: .8125rem; }
ul { margin: 0; padding: 0; list-style: none; font: .8125rem/1.8 ui-monospace, monospace; }
`;

/** @throws NodeError for a block that is not a valid document of its codec */
export async function documentPage(
  { node, target, request, reading }: GatewayCall,
  found: Found,
  headers: ResponseHeaders,
  codec: "dag-json" | "dag-cbor",
): Promise<ResponseFields> {
  const described = {
    ...headers,
    content_type: "text/html",
    x_content_type_options: "nosniff",
    content_security_policy: pagePolicy(style),
  };
  const { length } = await reading.read(found.cid);
  if (request.method === "HEAD") return { headers: described, body: reading.body(nothing()) };
  const how = { offline: reading.offline, ...(reading.signal === undefined ? {} : { signal: reading.signal }) };
  const [text, links] = await Promise.all([
    node.dag.json(`/ipfs/${found.text}`, how).then((json) => indented(String(json))),
    node.dag.links(found.cid, how),
  ]);
  const shown = links.slice(0, MAX_LINKS).map(({ cid }) => cid.toString());
  return {
    headers: described,
    body: page({ target, cid: found.text, codec, length, text, shown, links: links.length }),
  };
}

async function* nothing(): AsyncGenerator<string, void, undefined> {}

/** Indenting deeper levels would produce almost only spaces. */
const MAX_INDENTED_LEVELS = 64;

function indented(json: string): string {
  if (json.length > MAX_TEXT) return `${json.slice(0, MAX_TEXT)}…`;
  if (levelsOf(json) > MAX_INDENTED_LEVELS) return json;
  return JSON.stringify(JSON.parse(json), undefined, 2).slice(0, 2 * MAX_TEXT);
}

/**
 * Returns an upper bound of the nesting depth of a JSON text. It counts brackets in strings, too.
 */
function levelsOf(json: string): number {
  let level = 0;
  let deepest = 0;
  for (const [bracket] of json.matchAll(/[[\]{}]/g)) {
    level += bracket === "[" || bracket === "{" ? 1 : -1;
    deepest = Math.max(deepest, level);
  }
  return deepest;
}

interface Shown {
  readonly target: ContentTarget;
  readonly cid: string;
  readonly codec: string;
  /** Size of the block in bytes. */
  readonly length: number;
  readonly text: string;
  readonly shown: readonly string[];
  readonly links: number;
}

function page({ target, cid, codec, length, text, shown, links }: Shown): string {
  const here = escapedPath(`${visiblePath(target)}/`);
  const form = (format: string) => `<a href="${escape_html(here)}?format=${format}">${format}</a>`;
  const items = shown.map((each) => `<li><a href="${escape_html(`${target.gateway}/ipfs/${each}`)}">${each}</a></li>`);
  const more = links > shown.length ? `<p>${links - shown.length} more</p>` : "";
  const body = `<h1><small>${codec}</small> ${escape_html(cid)}</h1>
<p>${size_text(length)}, as ${form(codec)}, ${form("raw")}</p>
<pre>${text
    .split("\n")
    .map((line) => escape_html(printable(line)))
    .join("\n")}</pre>
${items.length === 0 ? "" : `<h2>Links</h2>\n<ul>\n${items.join("\n")}\n</ul>\n${more}`}`;
  return html_page({ title: `${codec} ${cid}`, style, body });
}
