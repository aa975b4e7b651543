/** The wanted blocks, and the blocks exchanged with each peer. */
import { html } from "htm/preact";
import { compact, count, Empty, Load, Page, Section, size, Table, useApi } from "modhost/admin";
import { Cid, Offline, shortened } from "../parts.js";

const number = (
  /** @type {string} */ name,
  /** @type {string} */ title,
  /** @type {(value: number) => string} */ text,
) => ({
  name,
  title,
  align: /** @type {const} */ ("end"),
  sort: (/** @type {any} */ row) => row[name],
  cell: (/** @type {any} */ row) => text(row[name]),
});

const columns = [
  {
    name: "peer",
    title: "Peer",
    sort: (/** @type {any} */ row) => row.peer,
    cell: (/** @type {any} */ row) => html`<code title=${row.peer}>${shortened(row.peer)}</code>`,
  },
  number("sent", "Sent", size),
  number("received", "Received", size),
  number("exchanged", "Blocks", compact),
  number("debt", "Sent / received", (value) => value.toFixed(2)),
];

export default function Bitswap() {
  const state = useApi("/node/bitswap", { every: 3000, topic: "" });
  return html`<${Page} title="Bitswap">
    <${Load} of=${state}>${(/** @type {any} */ data) => {
      const shown = [
        ["Blocks received", compact(data.blocks_received)],
        ["Blocks sent", compact(data.blocks_sent)],
        ["Received", size(data.data_received)],
        ["Sent", size(data.data_sent)],
        ["Received twice", `${compact(data.duplicate_blocks)} (${size(data.duplicate_data)})`],
        ["Announcements pending", compact(data.provide_queue)],
      ];
      return html`<${Offline} online=${data.online} />
        <dl class="figures">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
        <${Section} title=${`Wanted (${count(data.wants)})`}>
          ${data.wantlist.length === 0 ? html`<${Empty} title="No block is wanted." />` : html`<ul class="plain">${data.wantlist.slice(0, 100).map((/** @type {string} */ cid) => html`<li key=${cid}><${Cid} cid=${cid} /></li>`)}</ul>`}
          ${data.wants > 100 && html`<p class="soft">and ${count(data.wants - 100)} more</p>`}
        <//>
        <${Section} title=${`Ledgers (${count(data.partners)} peers)`}>
          <${Table} label="Ledgers" rows=${data.ledgers} rowKey=${(/** @type {any} */ row) => row.peer} sortBy="exchanged" descending columns=${columns} empty=${html`<${Empty} title="No blocks have been exchanged yet." />`} />
        <//>`;
    }}<//>
  <//>`;
}
