import { escape_html, html_page, size_text } from "../../core/net/http.ts";
import { style } from "./style.ts";

export interface Entry {
  readonly name: string;
  /** Bytes; undefined for a folder. */
  readonly size: number | undefined;
  readonly modified: Date;
}

export interface Listing {
  /** Decoded path of the folder, with a final slash. */
  readonly path: string;
  /** Folders first, each group by name. */
  readonly entries: readonly Entry[];
  /** There is a folder above that is served, too. */
  readonly parent: boolean;
}

export function jsonListing({ entries }: Listing): string {
  const items = entries.map(({ name, size, modified }) => ({
    name,
    type: size === undefined ? "directory" : "file",
    size,
    modified: modified.toISOString(),
  }));
  return `${JSON.stringify(items, undefined, 2)}\n`;
}

/** One name a line, folders with a slash. */
export function textListing({ entries }: Listing): string {
  return entries.map(({ name, size }) => `${name}${size === undefined ? "/" : ""}\n`).join("");
}

export function htmlListing({ path, entries, parent }: Listing): string {
  const rows = entries.map(htmlRow);
  if (parent) rows.unshift(`<tr class="up"><td><a href="../">Parent folder</a></td><td></td><td></td></tr>`);
  const count = entries.length === 1 ? "1 entry" : `${entries.length} entries`;
  const body = `<h1><small>Index of</small> ${escape_html(path).replaceAll("/", "/<wbr>")}</h1>
<table>
<thead><tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Modified (UTC)</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
<p>${count}</p>`;
  return html_page({ title: `Index of ${path}`, style, body });
}

function htmlRow({ name, size, modified }: Entry): string {
  const folder = size === undefined;
  const slash = folder ? "/" : "";
  const iso = modified.toISOString();
  const bytes = folder ? "" : ` title="${size} bytes"`;
  return (
    `<tr${folder ? ' class="folder"' : ""}><td><a href="./${encodeURIComponent(name)}${slash}">` +
    `${escape_html(name)}${slash}</a></td><td${bytes}>${folder ? "" : size_text(size)}</td>` +
    `<td><time datetime="${iso}">${iso.slice(0, 10)} <span>${iso.slice(11, 16)}</span></time></td></tr>`
  );
}
