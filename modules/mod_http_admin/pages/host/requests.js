/** Requests as they finish. */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Choice,
  clock,
  duration,
  Empty,
  Page,
  Problem,
  printable,
  Search,
  size,
  Table,
  useQuery,
} from "modhost/admin";
import { useTail } from "../tail.js";

/** @type {readonly (readonly [string, string])[]} */
const classes = [
  ["", "Any status"],
  ["2xx", "2xx: done"],
  ["3xx", "3xx: elsewhere"],
  ["4xx", "4xx: refused"],
  ["5xx", "5xx: failed"],
];

/** @param {number} status @returns {"good" | "warn" | "bad" | "plain"} */
const toneOf = (status) => (status >= 500 || status === 0 ? "bad" : status >= 400 ? "warn" : "good");

const columns = [
  {
    name: "time",
    title: "Time",
    class: "fit",
    cell: (/** @type {any} */ row) => html`<time datetime=${row.time}>${clock(row.time)}</time>`,
  },
  {
    name: "status",
    title: "Status",
    class: "fit",
    cell: (/** @type {any} */ row) =>
      html`<${Badge} tone=${toneOf(row.status)}>${row.status === 0 ? "left" : row.status}<//>`,
  },
  { name: "method", title: "Method", class: "fit", cell: (/** @type {any} */ row) => row.method },
  { name: "path", title: "Path", cell: (/** @type {any} */ row) => html`<bdi>${printable(row.path)}</bdi>` },
  { name: "app", title: "App", cell: (/** @type {any} */ row) => row.app ?? "" },
  { name: "ip", title: "Client", cell: (/** @type {any} */ row) => row.ip },
  {
    name: "bytes",
    title: "Size",
    align: /** @type {const} */ ("end"),
    class: "fit",
    cell: (/** @type {any} */ row) => size(row.bytes),
  },
  {
    name: "duration",
    title: "Took",
    align: /** @type {const} */ ("end"),
    class: "fit",
    cell: (/** @type {any} */ row) => duration(row.duration),
  },
];

export default function Requests() {
  const [path, setPath] = useQuery("path");
  const [status, setStatus] = useQuery("status");
  const matches = (/** @type {any} */ row) =>
    row.path.includes(path) && (status === "" || `${Math.floor(row.status / 100)}xx` === status);
  const tail = useTail({
    path: "/requests",
    query: { path, status },
    topic: "requests",
    keyOf: ({ id }) => id,
    matches,
  });
  const actions = html`<${Search} value=${path} onInput=${setPath} label="Part of the path" />
    <${Choice} label="Status" value=${status} onChange=${setStatus} choices=${classes} />
    <${Button} aria-pressed=${tail.isPaused} onClick=${() => tail.setPaused(!tail.isPaused)}>${tail.isPaused ? "Resume" : "Pause"}<//>`;
  const empty = html`<${Empty} title=${path === "" && status === "" ? "No request yet." : "None of the latest requests matches."}><p>New requests appear here when they have finished.</p><//>`;
  return html`<${Page} title="Requests" lead="The latest first, without query strings" actions=${actions}>
    <${Problem} error=${tail.past.error} retry=${tail.past.reload} />
    <${Table} label="Requests" rows=${tail.values.toReversed()} rowKey=${(/** @type {any} */ row) => row.id} columns=${columns} empty=${empty} />
  <//>`;
}
