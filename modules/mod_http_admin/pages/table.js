/** Tables: sorted by their heads, long ones drawn only where they are looked at. */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * A column. `cell` draws a row's value; `sort` gives what the row is sorted by (without it the column is not sorted).
 * @template R
 * @typedef {{ name: string, title: string, cell: (row: R) => any, sort?: (row: R) => string | number, align?: "end", class?: string }} Column
 */

const ROW = 40;
/** Rows that are drawn beyond those in sight. */
const BEYOND = 12;
/** Fewer rows than this are drawn all. */
const MAX_DRAWN = 200;

/**
 * @template R
 * @param {{ label: string, columns: readonly Column<R>[], rows: readonly R[], rowKey: (row: R) => string, empty?: any,
 *   sortBy?: string, descending?: boolean, onOpen?: (row: R) => void, rowClass?: (row: R) => string }} props
 */
export function Table({ label, columns, rows, rowKey, empty, sortBy, descending = false, onOpen, rowClass }) {
  const [order, setOrder] = useState({ by: sortBy, descending });
  if (rows.length === 0) return empty ?? null;
  const by = columns.find(({ name }) => name === order.by)?.sort;
  const sorted =
    by === undefined ? rows : [...rows].sort((a, b) => compare(by(a), by(b)) * (order.descending ? -1 : 1));
  const head = columns.map(({ name, title, sort, align }) => {
    const direction = order.by === name ? (order.descending ? "descending" : "ascending") : undefined;
    const turn = () => setOrder({ by: name, descending: order.by === name ? !order.descending : align === "end" });
    if (title === "") return html`<td key=${name}></td>`;
    return html`<th key=${name} scope="col" class=${align ?? ""} aria-sort=${direction}>
      ${sort === undefined ? title : html`<button type="button" class="sort" onClick=${turn}>${title}</button>`}
    </th>`;
  });
  const draw = (/** @type {R} */ row) => html`<tr key=${rowKey(row)} class=${rowClass?.(row) ?? ""}>
    ${columns.map(({ name, title, cell, align = "", class: own = "" }, at) => {
      const value = cell(row);
      const isNone = value === undefined || value === "" ? "none" : "";
      return html`<td key=${name} class=${`${align} ${own} ${isNone}`} data-title=${title}>
        <div>${at === 0 && onOpen !== undefined ? html`<button type="button" class="link" onClick=${() => onOpen(row)}>${value}</button>` : value}</div>
      </td>`;
    })}
  </tr>`;
  const table = (/** @type {any} */ body) => html`<table aria-label=${label} aria-rowcount=${rows.length + 1}>
    <thead><tr>${head}</tr></thead>${body}
  </table>`;
  if (sorted.length <= MAX_DRAWN)
    return html`<div class="table">${table(html`<tbody>${sorted.map(draw)}</tbody>`)}</div>`;
  return html`<${Long} rows=${sorted} columns=${columns.length} draw=${draw} table=${table} label=${label} />`;
}

/** @param {{ rows: readonly any[], columns: number, draw: (row: any) => any, table: (body: any) => any, label: string }} props */
function Long({ rows, columns, draw, table, label }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const above = useRef(/** @type {HTMLTableCellElement | null} */ (null));
  const below = useRef(/** @type {HTMLTableCellElement | null} */ (null));
  const [range, set] = useState({ first: 0, count: 40 });
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const look = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW) - BEYOND);
      const count = Math.ceil(element.clientHeight / ROW) + 2 * BEYOND;
      set((former) => (former.first === first && former.count === count ? former : { first, count }));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      element.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, []);
  const first = Math.min(range.first, Math.max(0, rows.length - range.count));
  const shown = rows.slice(first, first + range.count);
  useLayoutEffect(() => {
    if (above.current !== null) above.current.style.blockSize = `${first * ROW}px`;
    if (below.current !== null)
      below.current.style.blockSize = `${Math.max(0, rows.length - first - shown.length) * ROW}px`;
  }, [first, shown.length, rows.length]);
  const gap = (/** @type {any} */ ref) =>
    html`<tr class="gap" aria-hidden="true"><td ref=${ref} colspan=${columns}></td></tr>`;
  return html`<div class="table long" ref=${box} tabindex="0" role="group" aria-label=${label}>
    ${table(html`<tbody>${gap(above)}${shown.map(draw)}${gap(below)}</tbody>`)}
  </div>`;
}

/** @param {string | number} a @param {string | number} b */
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
