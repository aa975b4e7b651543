/** The certificates in use, and when they expire. */
import { html } from "htm/preact";
import { Ago, Badge, Copy, Empty, Load, Page, Table, useApi } from "modhost/admin";

const DAY = 86_400_000;

/** @param {string | undefined} expires @returns {"good" | "warn" | "bad"} */
function toneOf(expires) {
  const left = expires === undefined ? 0 : new Date(expires).getTime() - Date.now();
  return left < 3 * DAY ? "bad" : left < 21 * DAY ? "warn" : "good";
}

/** @type {Record<string, string>} */
const sources = { file: "From a file", "self-signed": "Created by the server", acme: "From an authority (ACME)" };

const columns = [
  {
    name: "name",
    title: "Name",
    sort: (/** @type {any} */ row) => row.name,
    cell: (/** @type {any} */ row) => (row.name === "*" ? "every other name" : row.name),
  },
  {
    name: "source",
    title: "Source",
    sort: (/** @type {any} */ row) => row.source,
    cell: (/** @type {any} */ row) => sources[row.source],
  },
  {
    name: "expires",
    title: "Expires",
    sort: (/** @type {any} */ row) => row.expires ?? "",
    cell: (/** @type {any} */ row) =>
      html`<${Badge} tone=${toneOf(row.expires)}>${row.expires ? html`<${Ago} time=${row.expires} />` : "not issued yet"}<//>`,
  },
  {
    name: "order",
    title: "Renewal",
    cell: (/** @type {any} */ { order }) =>
      order &&
      html`next attempt <${Ago} time=${order.next_try} />${order.error && html`<br /><span class="bad-text">${order.failures} failed: ${order.error}</span>`}`,
  },
  {
    name: "fingerprint",
    title: "SHA-256",
    cell: (/** @type {any} */ row) =>
      row.fingerprint && html`<${Copy} text=${row.fingerprint}>${row.fingerprint.slice(0, 23)}…<//>`,
  },
];

export default function Certificates() {
  const status = useApi("/status", { every: 30_000 });
  const empty = html`<${Empty} title="Nothing is served over TLS."><p>Set the options <code>https_ports</code>, <code>certificates</code> and <code>acme_hosts</code> to change that.</p><//>`;
  return html`<${Page} title="Certificates">
    <${Load} of=${status}>${(/** @type {any} */ { certificates }) => html`<${Table} label="Certificates" rows=${certificates} rowKey=${(/** @type {any} */ row) => row.name} sortBy="expires" columns=${columns} empty=${empty} />`}<//>
  <//>`;
}
