/**
 * The state of the store that this host shares with others, and its requests. Empty when the host
 * shares no store.
 */
import { html } from "htm/preact";
import { Ago, Badge, count, Empty, Meter, percent, Section, size, Table, useApi } from "modhost/admin";

const names = { objects: "Object store", database: "Database" };
/** @type {readonly import("../../../mod_http_admin/pages/table.js").Column<any>[]} */
const columns = [
  { name: "kind", title: "Request", sort: (row) => row.kind, cell: (row) => row.kind },
  ...[
    ["count", "Sent"],
    ["repeated", "Repeated"],
    ["failed", "Failed"],
  ].map(([name = "", title = ""]) => ({
    name,
    title,
    align: /** @type {const} */ ("end"),
    sort: (/** @type {any} */ row) => row[name],
    cell: (/** @type {any} */ row) => count(row[name]),
  })),
];

export function SharedStore() {
  const { data } = useApi("/node/store", { every: 5000 });
  if (data === undefined || !data.is_shared) return null;
  const { engines, cache, waiting, requests, commits, last_gc } = data;
  const reads = cache.hits + cache.misses;
  return html`<${Section} title="Shared store">
    <dl class="facts">
      ${engines.map(
        (/** @type {any} */ engine) => html`<dt key=${engine.kind}>${names[/** @type {"objects"} */ (engine.kind)]}</dt>
          <dd><code>${engine.place}</code> <${Badge} tone=${engine.problem === undefined ? "good" : "bad"}>${engine.problem === undefined ? "connected" : "not reachable"}<//>${engine.problem !== undefined && html` ${engine.problem}`}</dd>`,
      )}
      <dt>Waiting</dt><dd>${size(waiting.size)} of blocks, ${count(waiting.changes)} changes</dd>
      <dt>Commits</dt><dd>${count(commits.count)}, for ${count(commits.calls)} changes${commits.sessions_lost > 0 && `; session lost ${count(commits.sessions_lost)} times`}</dd>
      <dt>Last removal</dt><dd>${last_gc === undefined ? "none since the start" : html`<${Ago} time=${last_gc.time} />${last_gc.removed === undefined ? ", led by another host" : `, ${count(last_gc.removed)} blocks`}`}</dd>
      <dt>Cache</dt><dd>${size(cache.size)} of ${size(cache.limit)}${reads > 0 && `, of which ${percent(cache.hits / reads)} of all blocks were read`}</dd>
    </dl>
    <${Meter} value=${cache.size} max=${cache.limit} label="Size of the cache against its limit" />
    <${Table} label="Requests to the object store" rows=${requests} rowKey=${(/** @type {any} */ row) => row.kind} sortBy="count" descending columns=${columns} empty=${html`<${Empty} title="No requests yet." />`} />
  <//>`;
}
