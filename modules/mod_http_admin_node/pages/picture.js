/**
 * Draws a block with its links: the block in the middle and its links around it, each sized by the
 * data below it.
 */
import { html } from "htm/preact";
import { hrefOf, navigate, printable, size } from "modhost/admin";
import { shortened } from "./parts.js";

const WIDTH = 640;
const HEIGHT = 320;
/** Number of links that are drawn. The list shows all of them. */
const MAX = 40;

/** @param {{ node: any }} props */
export function Picture({ node }) {
  const items = node.links.items.slice(0, MAX);
  const most = Math.max(1, ...items.map((/** @type {any} */ item) => item.size));
  const center = { x: WIDTH / 2, y: HEIGHT / 2 };
  /** @type {{ item: any, x: number, y: number, radius: number }[]} */
  const placed = items.map((/** @type {any} */ item, /** @type {number} */ at) => {
    const angle = (at / items.length) * 2 * Math.PI - Math.PI / 2;
    return {
      item,
      x: center.x + Math.cos(angle) * WIDTH * 0.4,
      y: center.y + Math.sin(angle) * HEIGHT * 0.38,
      radius: 5 + 11 * Math.sqrt(item.size / most),
    };
  });
  const open = (/** @type {MouseEvent} */ event, /** @type {string} */ href) => {
    event.preventDefault();
    navigate(href);
  };
  return html`<svg class="picture" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`The block and ${items.length} of its ${node.links.total} links`}>
    ${placed.map(({ x, y }) => html`<line x1=${center.x} y1=${center.y} x2=${x} y2=${y} />`)}
    <circle class="self" cx=${center.x} cy=${center.y} r="16" /><text x=${center.x} y=${center.y + 32}>${shortened(node.cid)}</text>
    ${placed.map(({ item, x, y, radius }) => {
      const href = hrefOf("explore", { path: item.cid });
      const name = item.name === "" ? shortened(item.cid) : printable(item.name);
      return html`<a href=${href} onClick=${(/** @type {MouseEvent} */ event) => open(event, href)} aria-label=${`${name}, ${item.cid}`}>
        <title>${`${name}\n${item.cid}${item.size > 0 ? `\n${size(item.size)}` : ""}`}</title>
        <circle cx=${x} cy=${y} r=${radius} />${items.length <= 12 && html`<text x=${x} y=${y + radius + 13}>${name.length > 18 ? `${name.slice(0, 17)}…` : name}</text>`}
      </a>`;
    })}
  </svg>`;
}
