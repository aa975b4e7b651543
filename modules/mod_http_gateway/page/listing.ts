/**
 * The page of a directory. Its links have the attributes, the order and the quotes that the
 * conformance suite expects.
 */
import type { directoryEntry } from "modhost/node";
import { escape_html, html_page, page_style, printable, size_text } from "../../../core/net/http.ts";
import { type ContentTarget, escapedPath, escapedSegment, visiblePath } from "../content_target.ts";
import { iconOf, iconStyle } from "./icons.ts";

/** Increased when the page changes in anything but its style. */
export const PAGE_VERSION = 1;

type Link = Awaited<ReturnType<typeof directoryEntry>> & object;

/** The links of a directory, yielded as they are read. */
export interface ListedEntries {
  readonly first: IteratorResult<Link, void>;
  readonly rest: AsyncGenerator<Link, void, undefined>;
}

export interface Listed {
  readonly target: ContentTarget;
  /** CID of the directory. */
  readonly cid: string;
  /** Modification time, if the directory has one. */
  readonly changed: Date | undefined;
  readonly entries: ListedEntries;
}

export const listingStyle = `${page_style}
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { margin: 0 0 .5rem; padding: 0 .5rem; font-size: 1.25rem; font-weight: 600; overflow-wrap: anywhere; }
h1 small { color: var(--soft); font-size: inherit; font-weight: 400; }
.about { margin: 0 0 1rem; padding: 0 .5rem; color: var(--soft); font-size: .875rem; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; }
th { color: var(--soft); font-size: .8125rem; font-weight: 500; text-align: left; }
th, td { padding: .5rem; border-bottom: 1px solid var(--line); vertical-align: baseline; }
td:first-child { width: 100%; overflow-wrap: anywhere; }
td:nth-child(n+2), th:nth-child(n+2) { color: var(--soft); text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:hover { background: var(--hover); }
td.empty { color: var(--soft); text-align: center; padding: 2rem .5rem; }
.ipfs-hash { color: var(--soft); font: .8125rem ui-monospace, monospace; }
${iconStyle}
@media (max-width: 40rem) {
  td:nth-child(2), th:nth-child(2) { display: none; }
  h1, .about { padding: 0 .25rem; }
  th, td { padding: .625rem .25rem; }
  .icon { padding-left: 1.875rem; background-position: .25rem .75rem; }
}
`;

const EMPTY = '<tr><td class="empty" colspan="3">This directory is empty</td></tr>\n';
const MARK = "<!-- entries -->";

export async function* listingPage({ target, cid, changed, entries }: Listed): AsyncGenerator<string, void, undefined> {
  const title = `Index of /${target.namespace}/${[target.root, ...target.segments].join("/")}`;
  const body = `<h1><small>Index of</small> ${breadcrumbs(target)}</h1>
${about(target, cid, changed)}<table>
<thead><tr><th scope="col">Name</th><th scope="col">CID</th><th scope="col">Size</th></tr></thead>
<tbody>
${MARK}
</tbody>
</table>`;
  const [head = "", tail = ""] = html_page({ title: printable(title), style: listingStyle, body }).split(MARK);
  const path = visiblePath(target);
  const parent = target.segments.length > 0 ? parentRow(path) : "";
  yield* written(
    head + parent + (entries.first.done === true ? EMPTY : ""),
    entries,
    (entry) => row(target, path, entry),
    tail,
  );
}

/** Number of characters that are sent together. */
const PIECE_LENGTH = 16 * 1024;

/** A single loop writes all entries, because a directory may have a million of them. */
async function* written(
  head: string,
  { first, rest }: ListedEntries,
  text: (entry: Link) => string,
  tail: string,
): AsyncGenerator<string, void, undefined> {
  let piece = head;
  try {
    for (let next = first; next.done !== true; next = await rest.next()) {
      piece += text(next.value);
      if (piece.length < PIECE_LENGTH) continue;
      yield piece;
      piece = "";
    }
    yield piece + tail;
  } finally {
    await rest.return();
  }
}

/** Returns facts that the path does not show: the CID, and the modification time. */
function about({ namespace, segments }: ContentTarget, cid: string, changed: Date | undefined): string {
  const parts = namespace === "ipfs" && segments.length === 0 ? [] : [escape_html(cid)];
  if (changed !== undefined) {
    const iso = changed.toISOString();
    parts.push(`changed <time datetime="${iso}">${iso.slice(0, 10)}</time>`);
  }
  return parts.length === 0 ? "" : `<p class="about">${parts.join(", ")}</p>\n`;
}

/**
 * Links each part of the path. On a root's own host, the first link leads to the gateway or to the
 * host.
 */
function breadcrumbs({ namespace, root, segments, prefix, website, gateway }: ContentTarget): string {
  const isDnslink = website === "dnslink";
  let path = isDnslink
    ? gateway
    : `${gateway}${website === undefined || website === "app" ? prefix : `/${namespace}/${root}`}`;
  const parts = [`<a href="${link(isDnslink ? `${path}/` : path)}">${shown(root)}</a>`];
  for (const name of segments) {
    path += `/${name}`;
    parts.push(`<a href="${link(path)}">${shown(name)}</a>`);
  }
  return `/${namespace}/${parts.join("/")}`;
}

/**
 * Escapes a name so that it contains neither markup nor characters that change the text direction.
 */
const shown = (name: string): string => escape_html(printable(name));

const link = (path: string): string => escape_html(escapedPath(path));

function parentRow(path: string): string {
  return `<tr class="up"><td><a href="${link(`${path}/..`)}">..</a></td><td></td><td></td></tr>\n`;
}

const RAW = 0x55;

function row(target: ContentTarget, path: string, { name, cid, size }: Link): string {
  return (
    `<tr><td class="icon ${iconOf(name, cid.code === RAW)}"><a href="${link(`${path}/${name}`)}">${shown(name)}</a></td>` +
    `<td>${hashLink(target, name, cid.toString())}</td><td title="${size} bytes">${size_text(size)}</td></tr>\n`
  );
}

function hashLink({ website, gateway }: ContentTarget, name: string, cid: string): string {
  const short = `${cid.slice(0, 6)}…${cid.slice(-4)}`;
  const [href, more] =
    website === "dnslink"
      ? [`https://cid.ipfs.tech/#${cid}`, ' target="_blank" rel="noreferrer noopener"']
      : [`${gateway}/ipfs/${cid}?filename=${filename(name)}`, ""];
  return `<a class="ipfs-hash" translate="no" href="${escape_html(href)}"${more}>${short}</a>`;
}

/** Escapes non-ASCII characters twice, as the conformance suite expects. */
function filename(name: string): string {
  const once = escapedSegment(name).replace(/[&+=]/g, encodeURIComponent);
  return /^\p{ASCII}*$/u.test(name) ? once : once.replaceAll("%", "%25");
}

/** Yields name, CID and total size of each entry, as the directory records them. */
export function listingJson(entries: ListedEntries): AsyncGenerator<string, void, undefined> {
  let comma = "";
  const text = ({ name, cid, size }: Link) => {
    const before = comma;
    comma = ",";
    return `${before}\n${JSON.stringify({ name, cid: cid.toString(), size })}`;
  };
  return written("[", entries, text, "\n]\n");
}
