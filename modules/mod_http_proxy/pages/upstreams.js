/** The upstreams of proxied apps: their state, and buttons to drain and undrain them. */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  compact,
  Empty,
  Load,
  Page,
  Problem,
  post,
  printable,
  Table,
  useAction,
  useApi,
} from "modhost/admin";

/** @type {Record<string, "good" | "warn" | "bad" | "plain">} */
const tones = { healthy: "good", unhealthy: "bad", failing: "bad", drained: "warn" };

export default function Upstreams() {
  const upstreams = useApi("/http_proxy/upstreams", { every: 2000 });
  return html`<${Page} title="Upstreams" lead="The servers to which proxied apps forward requests">
    <${Load} of=${upstreams}>${(/** @type {any[]} */ rows) => html`<${Table} label="Upstreams" rows=${rows} rowKey=${keyOf} sortBy="app" columns=${columnsWith(upstreams.reload)} empty=${empty} />`}<//>
  <//>`;
}

const keyOf = (/** @type {any} */ { host, app, upstream }) => `${host} ${app} ${upstream}`;
const empty = html`<${Empty} title="No app is proxied."><p>The option <code>http_proxy</code> defines proxied apps and their upstreams.</p><//>`;

/** @param {() => Promise<void>} reload */
function columnsWith(reload) {
  return [
    {
      name: "app",
      title: "App",
      class: "fit",
      sort: (/** @type {any} */ row) => row.app,
      cell: (/** @type {any} */ { app, host }) => (host === "*" ? app : `${app} on ${host}`),
    },
    { name: "upstream", title: "Upstream", cell: (/** @type {any} */ row) => html`<code>${row.upstream}</code>` },
    {
      name: "state",
      title: "State",
      class: "fit",
      sort: (/** @type {any} */ row) => row.state,
      cell: (/** @type {any} */ row) => html`<${Badge} tone=${tones[row.state]}>${row.state}<//>`,
    },
    number("in_flight", "In flight"),
    number("requests", "Requests"),
    number("failures", "Failures"),
    {
      name: "last",
      title: "Last failure",
      class: "note",
      cell: (/** @type {any} */ row) => (row.last_failure === undefined ? "" : printable(row.last_failure)),
    },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) => html`<${Switch} of=${row} reload=${reload} />`,
    },
  ];
}

/** @param {string} name @param {string} title */
function number(name, title) {
  const value = (/** @type {any} */ row) => row[name];
  return {
    name,
    title,
    align: /** @type {const} */ ("end"),
    sort: value,
    cell: (/** @type {any} */ row) => compact(value(row)),
  };
}

/** @param {{ of: any, reload: () => Promise<void> }} props */
function Switch({ of: { host, app, upstream, state }, reload }) {
  const isDrained = state === "drained";
  const { start, isBusy, error } = useAction(async () => {
    await post(`/http_proxy/${isDrained ? "undrain" : "drain"}`, { host, app, upstream });
    await reload();
  });
  const text = isDrained ? "Use again" : "Drain";
  return html`<${Button} kind="quiet" isBusy=${isBusy} onClick=${start} aria-label=${`${text}: ${upstream}`} title=${isDrained ? "Send it requests again" : "Send it no further requests; requests in progress are finished"}>${text}<//><${Problem} error=${error} />`;
}
