/** Components that several pages of the node use. */
import { html } from "htm/preact";
import { Button, Copy, count, Link, Notice } from "modhost/admin";

/**
 * Shows a short form of a CID, with a button that copies the full text.
 * @param {{ cid: string }} props
 */
export function Cid({ cid }) {
  return html`<span class="copy"><${Link} to="explore" query=${{ path: cid }} title=${cid}><code>${shortened(cid)}</code><//><${Copy} text=${cid} label="Copy the CID">${""}<//></span>`;
}

/**
 * Shortens a CID to its beginning and end, which differ between CIDs.
 * @param {string} text
 */
export const shortened = (text) => (text.length <= 20 ? text : `${text.slice(0, 9)}…${text.slice(-7)}`);

/** @param {{ online: boolean }} props */
export const Offline = ({ online }) =>
  online
    ? null
    : html`<${Notice} tone="warn">The node is offline: it has no peers. <span>Start it with the option <code>node_offline</code> false.</span><//>`;

/**
 * Moves between the pages of a list; renders nothing if there is only one page.
 * @param {{ label: string, size: number, total: number, offset: number, onMove: (offset: number) =>
 * void }} props
 */
export function Pager({ label, size, total, offset, onMove }) {
  if (total <= size) return null;
  return html`<nav class="pager" aria-label=${label}>
    <${Button} disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - size))}>Previous<//>
    <span>${count(offset + 1)} to ${count(Math.min(total, offset + size))} of ${count(total)}</span>
    <${Button} disabled=${offset + size >= total} onClick=${() => onMove(offset + size)}>Next<//>
  </nav>`;
}
