/**
 * Shows any block, by CID or path: its properties, its content, and its links as a list and as a
 * picture.
 */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Copy,
  count,
  Empty,
  Link,
  Load,
  linkTo,
  Notice,
  Page,
  printable,
  Section,
  size,
  Table,
  TextField,
  useApi,
  useQuery,
} from "modhost/admin";
import { useEffect, useState } from "preact/hooks";
import { Pager, shortened } from "./parts.js";
import { Picture } from "./picture.js";

const PAGE = 100;

export default function Explore() {
  const [path, setPath] = useQuery("path");
  const [text, setText] = useState(path);
  useEffect(() => setText(path), [path]);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setPath(text.trim());
  };
  return html`<${Page} title="Explore">
    <form class="row" onSubmit=${submit}>
      <${TextField} label="CID or path" value=${text} onInput=${setText} />
      <${Button} type="submit" kind="primary" disabled=${text.trim() === ""}>Show<//>
    </form>
    ${path === "" ? html`<${Empty} title="No block is chosen."><p>Paste a CID, or a path such as <code>/ipfs/bafy…/a/b</code>.</p><//>` : html`<${Block} key=${path} path=${path} />`}
  <//>`;
}

/** @param {{ path: string }} props */
function Block({ path }) {
  const [offset, setOffset] = useState(0);
  const node = useApi("/node/dag", { query: { path, offset, limit: PAGE }, topic: "" });
  if (node.isLoading)
    return html`<p class="loading" role="status">Looking for the block, here and at peers, for up to 30 seconds…</p>`;
  return html`<${Load} of=${node}>${(/** @type {any} */ data) => html`<${Facts} node=${data} />
    ${data.links.total > 0 && html`<${Section} title="Picture"><${Picture} node=${data} /><//>`}
    <${Links} links=${data.links} offset=${offset} onMove=${setOffset} />
    <${Data} data=${data.data} />`}<//>`;
}

/** @param {{ node: any }} props */
function Facts({ node }) {
  const { cid, codec, hash, size: bytes, was_here: wasHere, unixfs, version, remainder } = node;
  return html`<${Section} title="Block" actions=${unixfs && html`<a class="button" href=${unixfs.type === "directory" ? linkTo("/node/files/tar", { path: `/ipfs/${cid}` }) : linkTo("/node/files/content", { path: `/ipfs/${cid}`, as: "download" })} download>Download<//><a class="button" href=${linkTo("/node/files/car", { path: `/ipfs/${cid}` })} download>CAR</a>`}>
    <dl class="facts">
      <dt>CID</dt><dd><${Copy} text=${cid} /></dd>
      <dt>Codec</dt><dd>${codec}, CIDv${version}</dd>
      <dt>Hash</dt><dd>${hash.name} <code>${hash.digest}</code></dd>
      <dt>Size</dt><dd>${size(bytes)} ${!wasHere && html`<${Badge} tone="warn">fetched from a peer just now<//>`}</dd>
      ${unixfs && html`<dt>UnixFS</dt><dd>${unixfs.type}, ${size(unixfs.size)}</dd>`}
      ${remainder && html`<dt>Path inside</dt><dd><code>${printable(remainder)}</code></dd>`}
    </dl>
  <//>`;
}

const columns = [
  {
    name: "name",
    title: "Name",
    cell: (/** @type {any} */ row) =>
      row.name === "" ? html`<span class="soft">no name</span>` : html`<bdi>${printable(row.name)}</bdi>`,
  },
  {
    name: "cid",
    title: "CID",
    cell: (/** @type {any} */ row) =>
      html`<${Link} to="explore" query=${{ path: row.cid }} title=${row.cid}><code>${shortened(row.cid)}</code><//>`,
  },
  {
    name: "size",
    title: "Size below",
    align: /** @type {const} */ ("end"),
    cell: (/** @type {any} */ row) => (row.size > 0 ? size(row.size) : ""),
  },
];

/** @param {{ links: any, offset: number, onMove: (offset: number) => void }} props */
function Links({ links, offset, onMove }) {
  const { total, items } = links;
  return html`<${Section} title=${`Links (${count(total)})`}>
    <${Table} label="Links" rows=${items.map((/** @type {any} */ item, /** @type {number} */ at) => ({ ...item, at }))} rowKey=${(/** @type {any} */ row) => String(row.at)} columns=${columns} empty=${html`<p class="soft">This block has no links.</p>`} />
    <${Pager} label="Pages of links" size=${PAGE} total=${total} offset=${offset} onMove=${onMove} />
  <//>`;
}

/** @param {{ data: any }} props */
function Data({ data }) {
  if (data.size === 0) return null;
  return html`<${Section} title=${`Data (${size(data.size)}${data.form === "hex" ? ", in hex" : ""})`}>
    <pre dir="ltr">${data.form === "hex" ? grouped(data.text) : data.text}</pre>
    ${data.is_cut && html`<${Notice}>Only the beginning is shown.<//>`}
  <//>`;
}

/** @param {string} hex */
const grouped = (hex) => hex.replace(/(..)/g, "$1 ");
