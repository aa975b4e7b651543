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
  const title = escapeHtml(`Index of ${path}`);
  const rows = entries.map(htmlRow);
  if (parent) rows.unshift(`<tr class="up"><td><a href="../">Parent folder</a></td><td></td><td></td></tr>`);
  const count = entries.length === 1 ? "1 entry" : `${entries.length} entries`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1><small>Index of</small> ${escapeHtml(path).replaceAll("/", "/<wbr>")}</h1>
<table>
<thead><tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Modified (UTC)</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
<p>${count}</p>
</main>
</body>
</html>
`;
}

function htmlRow({ name, size, modified }: Entry): string {
  const folder = size === undefined;
  const slash = folder ? "/" : "";
  const iso = modified.toISOString();
  const bytes = folder ? "" : ` title="${size} bytes"`;
  return (
    `<tr${folder ? ' class="folder"' : ""}><td><a href="./${encodeURIComponent(name)}${slash}">` +
    `${escapeHtml(name)}${slash}</a></td><td${bytes}>${folder ? "" : sizeText(size)}</td>` +
    `<td><time datetime="${iso}">${iso.slice(0, 10)} <span>${iso.slice(11, 16)}</span></time></td></tr>`
  );
}

/** 1,234,567 is "1.2 MB"; decimal units, as file managers show them. */
function sizeText(bytes: number): string {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (value < 999.5) return `${unit === "B" || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${Math.round(value)} PB`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
