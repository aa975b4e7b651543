/** The overview: addresses and apps, the load, and warnings. */
import { html } from "htm/preact";
import {
  Ago,
  Button,
  Confirm,
  count,
  duration,
  Empty,
  Link,
  Load,
  Notice,
  Page,
  Plot,
  percent,
  post,
  Section,
  size,
  Table,
  toast,
  useApi,
  useTopic,
} from "modhost/admin";
import { useState } from "preact/hooks";

/** Number of seconds that the plots show. */
const SHOWN = 120;

export default function Overview() {
  const status = useApi("/status", { every: 5000 });
  const [isLeaving, setLeaving] = useState(false);
  const restart = async () => {
    await post("/takeover");
    toast("A new process has taken over.");
  };
  const actions = html`<${Button} onClick=${() => setLeaving(true)}>Restart<//>`;
  return html`<${Page} title="Overview" lead=${status.data && html`modhost ${status.data.version}, process ${status.data.pid}, started <${Ago} time=${status.data.started} />`} actions=${actions}>
    ${
      isLeaving &&
      html`<${Confirm} title="Restart the server?" confirm="Restart" onConfirm=${restart} onClose=${() => setLeaving(false)}>
        <p>A new process reads the configuration and loads everything, then takes over. Open requests are finished, and no new one is refused. If the new process cannot start, this one keeps serving.</p>
      <//>`
    }
    <${Load} of=${status}>${(/** @type {any} */ data) => html`<${Warnings} status=${data} /><${LiveMetrics} status=${data} /><${Modules} status=${data} /><${Addresses} status=${data} />`}<//>
  <//>`;
}

/** Warnings that the section about modules shows in more detail. */
const ofModule = /^The module \S+ is /;

/** @param {{ status: any }} props */
function Warnings({ status }) {
  const isLeaving = status.phase !== "running";
  return html`${isLeaving && html`<${Notice} tone="warn">The server is ${status.phase}.<//>`}
    ${status.warnings.filter((/** @type {string} */ text) => !ofModule.test(text)).map((/** @type {string} */ text) => html`<${Notice} key=${text} tone="warn">${text}<//>`)}`;
}

/** @param {{ status: any }} props */
function LiveMetrics({ status }) {
  const [points, set] = useState(/** @type {any[]} */ ([]));
  useTopic("figures", (value) => set((previous) => [...previous.slice(1 - SHOWN), value]));
  const now = points.at(-1);
  const times = points.map(({ time }) => new Date(time).getTime() / 1000);
  const shown = [
    ["Requests now", count(status.requests.length)],
    ["Connections", count(now?.connections ?? status.connections)],
    ["CPU", percent(now?.cpu)],
    ["Event loop", percent(now?.event_loop)],
    ["Memory", size(now?.rss)],
    ["Up for", duration(Date.now() - new Date(status.started).getTime())],
  ];
  return html`<${Section} title="Now">
    <dl class="figures">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value || "–"}</dd></div>`)}</dl>
    <div class="columns">
      <${Plot} title="CPU and event loop" times=${times} span=${SHOWN} format=${percent}
        series=${[
          { title: "CPU", values: points.map(({ cpu }) => cpu) },
          { title: "Event loop", values: points.map(({ event_loop: busy }) => busy), color: 2 },
        ]} />
      <${Plot} title="Memory" times=${times} span=${SHOWN} format=${size}
        series=${[
          { title: "Process", values: points.map(({ rss }) => rss) },
          { title: "Heap", values: points.map(({ heap }) => heap), color: 2 },
        ]} />
    </div>
  <//>`;
}

/** @param {{ status: any }} props */
function Modules({ status }) {
  const bad = status.modules.filter(
    (/** @type {any} */ { status: state }) => state === "failed" || state === "quarantined",
  );
  if (bad.length === 0) {
    return html`<${Section} title="Modules"><p>${count(status.modules.length)} modules are loaded, and none has failed. <${Link} to="modules">Show them<//></p><//>`;
  }
  return html`<${Section} title="Modules">
    ${bad.map(
      (/** @type {any} */ { name, host, status: state, note }) => html`<${Notice} key=${`${name} ${host}`} tone="bad">
      <p><${Link} to=${`modules/${name}`}>${name}<//> ${state === "failed" ? "has failed" : "is in quarantine"}: ${note}</p>
    <//>`,
    )}
  <//>`;
}

/** @param {{ status: any }} props */
function Addresses({ status }) {
  const empty = html`<${Empty} title="The server listens on no port."><p>The options <code>http_ports</code> and <code>https_ports</code> set its ports.</p><//>`;
  return html`<div class="columns">
    <${Section} title="Listening">
      <${Table} label="Addresses" rows=${status.addresses} rowKey=${(/** @type {any} */ row) => `${row.service} ${row.address} ${row.port}`} empty=${empty}
        columns=${[
          { name: "service", title: "Service", cell: (/** @type {any} */ row) => row.service },
          { name: "address", title: "Address", cell: (/** @type {any} */ row) => html`<code>${row.address}</code>` },
          { name: "port", title: "Port", align: "end", cell: (/** @type {any} */ row) => row.port },
        ]} />
    <//>
    <${Section} title="This installation">
      <dl class="facts">
        <dt>Config file</dt><dd>${status.config ? html`<code>${status.config}</code>` : "none"}</dd>
        <dt>Data folder</dt><dd><code>${status.data_path}</code></dd>
      </dl>
    <//>
  </div>`;
}
