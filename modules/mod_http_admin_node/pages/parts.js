/** What several pages of the node show. */
import { html } from "htm/preact";
import { Copy, Link, Notice } from "modhost/admin";

/** A CID, short, with its whole text to copy. @param {{ cid: string }} props */
export function Cid({ cid }) {
  return html`<span class="copy"><${Link} to="explore" query=${{ path: cid }} title=${cid}><code>${shortened(cid)}</code><//><${Copy} text=${cid} label="Copy the CID">${""}<//></span>`;
}

/** The begin and the end, which differ. @param {string} text */
export const shortened = (text) => (text.length <= 20 ? text : `${text.slice(0, 9)}…${text.slice(-7)}`);

/** @param {{ online: boolean }} props */
export const Offline = ({ online }) =>
  online
    ? null
    : html`<${Notice} tone="warn">The node is offline: it has no peers. <span>Start it with the option <code>node_offline</code> false.</span><//>`;
