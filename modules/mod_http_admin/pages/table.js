/**
 * Tables that can be sorted by their column heads. In long tables only the visible rows are drawn.
 */
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * A column. `cell` draws the value of a row. `sort` returns the value that rows are sorted by; a
 * column without it cannot be sorted.
 * @template R
 * @typedef {{ name: string, title: string, cell: (row: R) => any, sort?: (row: R) => string |
 * number, align?: "end", class?: string }} Column
 */

/** The height of a single-line row. Higher rows are measured when they are drawn. */
const ROW = 40;
/** Number of rows that are drawn above and below the visible ones. */
const BEYOND = 12;
/** Tables with fewer rows are drawn completely. */
const MAX_DRAWN = 200;

/**
 * @template R
 * @param {{ label: string, columns: readonly Column<R>[], rows: readonly R[], rowKey: (row: R) =>
 *   string, empty?: any, sortBy?: string, descending?: boolean, onOpen?: (row: R) => void,
 *   rowClass?: (row: R) => string }} props
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
  const draw = (
    /** @type {R} */ row,
    /** @type {number} */ at,
  ) => html`<tr key=${rowKey(row)} class=${rowClass?.(row) ?? ""} aria-rowindex=${at + 2}>
    ${columns.map(({ name, title, cell, align = "", class: own = "" }, position) => {
      const value = cell(row);
      const isNone = value === undefined || value === "" ? "none" : "";
      return html`<td key=${name} class=${`${align} ${own} ${isNone}`} data-title=${title}>
        <div>${position === 0 && onOpen !== undefined ? html`<button type="button" class="link" onClick=${() => onOpen(row)}>${value}</button>` : value}</div>
      </td>`;
    })}
  </tr>`;
  const table = (/** @type {any} */ body) => html`<table aria-label=${label} aria-rowcount=${rows.length + 1}>
    <thead><tr>${head}</tr></thead>${body}
  </table>`;
  if (sorted.length <= MAX_DRAWN)
    return html`<div class="table">${table(html`<tbody>${sorted.map(draw)}</tbody>`)}</div>`;
  return html`<${Long} rows=${sorted} rowKey=${rowKey} columns=${columns.length} draw=${draw} table=${table} label=${label} />`;
}

/**
 * @param {{ rows: readonly any[], rowKey: (row: any) => string, columns: number, draw: (row: any,
 * at: number) => any, table: (body: any) => any, label: string }} props
 */
function Long({ rows, rowKey, columns, draw, table, label }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const above = useRef(/** @type {HTMLTableCellElement | null} */ (null));
  const below = useRef(/** @type {HTMLTableCellElement | null} */ (null));
  const heights = useRef(/** @type {Map<string, number>} */ (new Map()));
  const [view, setView] = useState({ top: 0, height: 20 * ROW });
  const [, measured] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const look = () => {
      const top = Math.floor(element.scrollTop / ROW) * ROW;
      const height = element.clientHeight;
      setView((previous) => (previous.top === top && previous.height === height ? previous : { top, height }));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      element.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, []);
  // A row that has not been drawn yet counts as one line.
  const tops = [0];
  for (const row of rows) tops.push(/** @type {number} */ (tops.at(-1)) + (heights.current.get(rowKey(row)) ?? ROW));
  const whole = /** @type {number} */ (tops.at(-1));
  const at = (/** @type {number} */ position) => Math.max(0, tops.findIndex((top) => top > position) - 1);
  const last = Math.min(rows.length, at(Math.min(view.top + view.height, whole - 1)) + 1 + BEYOND);
  const first = Math.max(0, Math.min(at(view.top), last) - BEYOND);
  const shown = rows.slice(first, last);
  useLayoutEffect(() => {
    if (above.current !== null) above.current.style.blockSize = `${tops[first]}px`;
    if (below.current !== null) below.current.style.blockSize = `${whole - /** @type {number} */ (tops[last])}px`;
    const known = heights.current;
    // Forgets all heights when most of them belong to rows that no longer exist.
    if (known.size > 2 * rows.length) known.clear();
    let isNew = false;
    for (const [index, element] of (box.current?.querySelectorAll("tbody tr:not(.gap)") ?? []).entries()) {
      const key = rowKey(shown[index]);
      const { height } = element.getBoundingClientRect();
      if (Math.abs((known.get(key) ?? ROW) - height) < 0.5) continue;
      known.set(key, height);
      isNew = true;
    }
    if (isNew) measured((times) => times + 1);
  });
  const gap = (/** @type {any} */ ref) =>
    html`<tr class="gap" aria-hidden="true"><td ref=${ref} colspan=${columns}></td></tr>`;
  return html`<div class="table long" ref=${box} tabindex="0" role="group" aria-label=${label}>
    ${table(html`<tbody>${gap(above)}${shown.map((row, index) => draw(row, first + index))}${gap(below)}</tbody>`)}
  </div>`;
}

/** @param {string | number} a @param {string | number} b */
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
