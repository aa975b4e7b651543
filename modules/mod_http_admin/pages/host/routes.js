/** The routes with their load, latency and error rate, and a lookup of the route for a request. */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Choice,
  compact,
  duration,
  Empty,
  get,
  Link,
  Load,
  Page,
  Plot,
  Problem,
  rate,
  Search,
  Section,
  Table,
  TextField,
  useAction,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map(
  (each) => /** @type {const} */ ([each, each]),
);

export default function Routes() {
  const [module] = useQuery("module");
  const [route] = useQuery("route");
  if (route !== "") return html`<${One} module=${module} route=${route} />`;
  return html`<${Page} title="Routes" lead="The last hour, with a sample every ten seconds"><${Traffic} /><${RouteMetrics} /><${Explain} /><//>`;
}

/** @param {any} value */
const perSecond = (value) => `${compact(Math.round(value * 10) / 10)}/s`;

function Traffic() {
  const history = useApi("/history", {
    query: { series: "requests,errors,sent,received,active" },
    every: 10_000,
    topic: "",
  });
  return html`<${Load} of=${history}>${(/** @type {any} */ { time, series }) => html`<div class="columns">
    <${Plot} title="Requests" times=${time} span=${3600} format=${perSecond} series=${[
      { title: "Requests", values: series.requests },
      { title: "Errors", values: series.errors, color: 5 },
    ]} />
    <${Plot} title="Bodies" times=${time} span=${3600} format=${rate} series=${[
      { title: "Sent", values: series.sent },
      { title: "Received", values: series.received, color: 2 },
    ]} />
  </div>`}<//>`;
}

const columns = [
  {
    name: "route",
    title: "Route",
    sort: (/** @type {any} */ row) => row.route,
    cell: (/** @type {any} */ { module, route }) =>
      html`<${Link} to="routes" query=${{ module, route }}>${route === "none" ? "no route" : html`<code>${route}</code>`}<//>`,
  },
  {
    name: "module",
    title: "Module",
    sort: (/** @type {any} */ row) => row.module,
    cell: (/** @type {any} */ { module }) =>
      module === "none" ? "" : html`<${Link} to=${`modules/${module}`}>${module}<//>`,
  },
  number("rate", "Now", (row) => row.rate, perSecond),
  number("minute", "Minute", (row) => row.minute.requests, compact),
  number("hour", "Hour", (row) => row.hour.requests, compact),
  number(
    "errors",
    "Errors",
    (row) => row.hour.errors,
    (value) => (value === 0 ? "0" : html`<${Badge} tone="bad">${compact(value)}<//>`),
  ),
  number("p50", "p50", (row) => row.hour.p50 ?? -1, latency),
  number("p90", "p90", (row) => row.hour.p90 ?? -1, latency),
  number("p99", "p99", (row) => row.hour.p99 ?? -1, latency),
];

/**
 * @param {string} name @param {string} title @param {(row: any) => number} value @param {(value:
 * number) => any} text
 */
function number(name, title, value, text) {
  return {
    name,
    title,
    align: /** @type {const} */ ("end"),
    sort: value,
    cell: (/** @type {any} */ row) => text(value(row)),
  };
}

/** @param {number} seconds */
function latency(seconds) {
  return seconds < 0 ? "" : duration(seconds * 1000);
}

function RouteMetrics() {
  const [search, setSearch] = useQuery("search");
  const metrics = useApi("/routes/figures", { every: 5000, topic: "" });
  return html`<${Section} title="By route" actions=${html`<${Search} value=${search} onInput=${setSearch} label="Search routes" />`}>
    <${Load} of=${metrics}>${(/** @type {any[]} */ all) => {
      const rows = all.filter(({ route, module }) => `${route} ${module}`.toLowerCase().includes(search.toLowerCase()));
      const empty = html`<${Empty} title=${all.length === 0 ? "No request in the last hour." : "No route matches."}>
        ${all.length === 0 && html`<p>Send a request, for example with <code>curl</code>, and it appears here.</p>`}
      <//>`;
      return html`<${Table} label="Routes" rows=${rows} rowKey=${(/** @type {any} */ row) => `${row.module} ${row.route}`} sortBy="hour" descending columns=${columns} empty=${empty} />`;
    }}<//>
  <//>`;
}

/** @param {{ module: string, route: string }} props */
function One({ module, route }) {
  const history = useApi("/history", { query: { module, route }, every: 10_000, topic: "" });
  return html`<${Page} title=${route} lead=${html`of the module <${Link} to=${`modules/${module}`}>${module}<//> · <${Link} to="routes">all routes<//>`}>
    <${Load} of=${history}>${(/** @type {any} */ { time, series }) => html`<div class="columns">
      <${Plot} title="Requests" times=${time} span=${3600} format=${perSecond} series=${[
        { title: "Requests", values: series.requests },
        { title: "Errors", values: series.errors, color: 5 },
      ]} />
      <${Plot} title="Latency" times=${time} span=${3600} format=${latency} series=${[
        { title: "p50", values: series.p50 },
        { title: "p90", values: series.p90, color: 2 },
        { title: "p99", values: series.p99, color: 4 },
      ]} />
      <${Plot} title="Bodies" times=${time} span=${3600} format=${rate} series=${[
        { title: "Sent", values: series.sent },
        { title: "Received", values: series.received, color: 2 },
      ]} />
    </div>`}<//>
  <//>`;
}

function Explain() {
  const [method, setMethod] = useState("GET");
  const [path, setPath] = useState("/");
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const ask = useAction(async () => setFound(await get("/explain", { method, path })));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void ask.start();
  };
  return html`<${Section} title="Which route would serve a request?">
    <form class="row" onSubmit=${submit}>
      <${Choice} label="Method" value=${method} onChange=${setMethod} choices=${methods} />
      <${TextField} label="Path" value=${path} onInput=${setPath} />
      <${Button} type="submit" isBusy=${ask.isBusy}>Explain<//>
    </form>
    <${Problem} error=${ask.error} />
    ${
      found &&
      html`${
        found.claimants.length > 0 &&
        html`<p>These apps may claim the request first, mostly by its host: ${found.claimants.map((/** @type {any} */ { app }) => app).join(", ")}.</p>`
      }${
        found.middleware.length > 0 &&
        html`<p>The request first passes <${Link} to="middleware">middleware<//>: ${found.middleware.map((/** @type {any} */ { name }) => name).join(", ")}.</p>`
      }
      ${
        found.candidates.length > 0 &&
        html`<p>These routes are tried in this order, until one responds:</p>
        <ol class="plain">${found.candidates.map((/** @type {any} */ each) => html`<li><code>${each.method} ${each.path}</code> of the module <${Link} to=${`modules/${each.module}`}>${each.module}<//></li>`)}</ol>`
      }
      <p>If none responds, the status is ${found.status}: ${found.reason}</p>`
    }
  <//>`;
}
