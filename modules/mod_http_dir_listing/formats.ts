import { setImmediate as nextTurn } from "node:timers/promises";
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
  /** The number of entries of the whole folder. */
  readonly total: number;
  /** Whether the parent folder is served, too. */
  readonly parent: boolean;
}

/** A format of the listing, written entry by entry. */
export interface Format {
  readonly type: string;
  before(listing: Listing): string;
  entry(entry: Entry, isFirst: boolean): string;
  after(listing: Listing): string;
}

/** Number of entries that are written before other work runs. */
const PIECE = 500;

/** Returns the bytes of the listing. */
export async function render(format: Format, listing: Listing): Promise<Buffer> {
  const { entries } = listing;
  const pieces = [Buffer.from(format.before(listing))];
  for (let at = 0; at < entries.length; at += PIECE) {
    if (at > 0) await nextTurn();
    const rows = entries.slice(at, at + PIECE).map((entry, index) => format.entry(entry, at + index === 0));
    pieces.push(Buffer.from(rows.join("")));
  }
  pieces.push(Buffer.from(format.after(listing)));
  return Buffer.concat(pieces);
}

/** Returns a note that entries are missing; undefined when the listing is complete. */
function cut({ entries, total }: Listing): string | undefined {
  const counted = (count: number) => count.toLocaleString("en");
  return total <= entries.length ? undefined : `the first ${counted(entries.length)} of ${counted(total)} entries`;
}

function jsonItem(item: object, isFirst: boolean): string {
  const lines = JSON.stringify(item, undefined, 2).replaceAll("\n", "\n  ");
  return `${isFirst ? "[" : ","}\n  ${lines}`;
}

const json: Format = {
  type: "application/json; charset=utf-8",
  before: () => "",
  entry: ({ name, size, modified }, isFirst) => {
    const type = size === undefined ? "directory" : "file";
    return jsonItem({ name, type, size, modified: modified.toISOString() }, isFirst);
  },
  after: (listing) => {
    const { entries, total } = listing;
    const note = cut(listing);
    const rest = note === undefined ? "" : jsonItem({ type: "cut", note, shown: entries.length, total }, false);
    return entries.length === 0 ? "[]\n" : `${rest}\n]\n`;
  },
};

/**
 * One name a line, folders with a slash at the end. No name contains a slash, so the note in the
 * last line is no name.
 */
const text: Format = {
  type: "text/plain; charset=utf-8",
  before: () => "",
  entry: ({ name, size }) => `${name}${size === undefined ? "/" : ""}\n`,
  after: (listing) => {
    const note = cut(listing);
    return note === undefined ? "" : `/... ${note}\n`;
  },
};

/** Marks the position of the rows in a page. Paths are escaped, so none can contain it. */
const ROWS = "<!--rows-->";

/** Returns the parts of the page before and after its rows. */
function frame(listing: Listing): readonly string[] {
  const { path, entries, parent } = listing;
  const up = parent ? `<tr class="up"><td><a href="../">Parent folder</a></td><td></td><td></td></tr>\n` : "";
  const count = entries.length === 1 ? "1 entry" : `${entries.length} entries`;
  const body = `<h1><small>Index of</small> ${escape_html(path).replaceAll("/", "/<wbr>")}</h1>
<table>
<thead><tr><th scope="col">Name</th><th scope="col">Size</th><th scope="col">Modified (UTC)</th></tr></thead>
<tbody>
${up}${ROWS}</tbody>
</table>
<p>${cut(listing)?.replace("the", "The") ?? count}</p>`;
  return html_page({ title: `Index of ${path}`, style, body }).split(ROWS);
}

const html: Format = {
  type: "text/html; charset=utf-8",
  before: (listing) => frame(listing)[0] as string,
  entry: (entry) => `${htmlRow(entry)}\n`,
  after: (listing) => frame(listing)[1] as string,
};

export const formats = { html, json, text };

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
