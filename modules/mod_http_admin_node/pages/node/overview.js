/** The node's identity, addresses, storage and traffic. */
import { html } from "htm/preact";
import {
  Button,
  Confirm,
  Copy,
  compact,
  count,
  Load,
  Meter,
  Page,
  Plot,
  percent,
  post,
  rate,
  Section,
  size,
  toast,
  useApi,
  useTopic,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { Offline } from "../parts.js";
import { Jobs } from "./jobs.js";
import { SharedStore } from "./store.js";

/** @param {number} share @returns {"plain" | "warn" | "bad"} */
const toneOf = (share) => (share > 0.95 ? "bad" : share > 0.8 ? "warn" : "plain");
const HOUR = 3600;

export default function Node() {
  const status = useApi("/node", { every: 15_000 });
  return html`<${Page} title="Node" lead=${status.data && html`${status.data.agent}, ${status.data.online ? "online" : "offline"}`}>
    <${Load} of=${status}>${(/** @type {any} */ data) => html`
      <${Offline} online=${data.online} />
      <${Now} />
      <${Repo} repo=${data.repo} path=${data.path} onChange=${status.reload} />
      <${SharedStore} />
      <${Jobs} />
      <${Identity} status=${data} />
    `}<//>
  <//>`;
}

function Now() {
  const first = useApi("/node/figures", { topic: "" });
  const history = useApi("/node/history", { every: 10_000, topic: "" });
  const [live, setLive] = useState(/** @type {any} */ (undefined));
  useTopic("node_figures", setLive);
  const now = live ?? first.data;
  const shown = [
    ["Peers", count(now?.peers)],
    ["In", rate(now?.rate_in)],
    ["Out", rate(now?.rate_out)],
    ["Received", size(now?.total_in)],
    ["Sent", size(now?.total_out)],
    ["Blocks wanted", count(now?.wants)],
  ];
  return html`<${Section} title="Now">
    <dl class="figures">${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value || "–"}</dd></div>`)}</dl>
    <${Load} of=${history}>${(/** @type {any} */ { time, series }) => html`<div class="columns">
      <${Plot} title="Bandwidth" times=${time} span=${HOUR} format=${rate} series=${[
        { title: "In", values: series.rate_in },
        { title: "Out", values: series.rate_out, color: 2 },
      ]} />
      <${Plot} title="Peers" times=${time} span=${HOUR} format=${(/** @type {number} */ value) => (Number.isInteger(value) ? compact(value) : "")} series=${[{ title: "Peers", values: series.peers }]} />
    </div>`}<//>
  <//>`;
}

/** @param {{ repo: any, path: string, onChange: () => void }} props */
function Repo({ repo, path, onChange }) {
  const [dialog, setDialog] = useState("");
  const begin = async () => {
    await post(`/node/repo/${dialog}`);
    toast(dialog === "gc" ? "The garbage collection has begun." : "The verification has begun.", "plain");
    onChange();
  };
  const share = repo.limit === undefined ? undefined : repo.size / repo.limit;
  const actions = html`<${Button} onClick=${() => setDialog("verify")}>Verify<//><${Button} onClick=${() => setDialog("gc")}>Collect garbage<//>`;
  return html`<${Section} title="Repo" actions=${actions}>
    <p>${size(repo.size)}${repo.limit !== undefined ? ` of ${size(repo.limit)} (${percent(share)})` : ", without a limit"}, ${count(repo.blocks)} blocks, in <code>${path}</code></p>
    ${share !== undefined && html`<${Meter} value=${repo.size} max=${repo.limit} label="Size of the repo against its limit" tone=${toneOf(share)} />`}
    ${
      dialog === "gc" &&
      html`<${Confirm} title="Collect garbage?" confirm="Collect" onConfirm=${begin} onClose=${() => setDialog("")}>
        <p>Blocks that are neither pinned nor in Files are deleted. They can be fetched again only from peers that have them.</p>
      <//>`
    }
    ${
      dialog === "verify" &&
      html`<${Confirm} title="Verify the repo?" confirm="Verify" onConfirm=${begin} onClose=${() => setDialog("")}>
        <p>Every block is read, and its hash is checked. This takes as long as reading the whole repo. The node keeps running meanwhile.</p>
      <//>`
    }
  <//>`;
}

/** @param {{ status: any }} props */
function Identity({ status }) {
  const list = (/** @type {string[]} */ texts, /** @type {string} */ none) =>
    texts.length === 0
      ? none
      : html`<ul class="plain">${texts.map((text) => html`<li key=${text}><${Copy} text=${text} /></li>`)}</ul>`;
  return html`<${Section} title="Identity and addresses">
    <dl class="facts">
      <dt>Peer id</dt><dd><${Copy} text=${status.id} /></dd>
      <dt>Announced</dt><dd>${list(status.addresses, "nothing")}</dd>
      <dt>Listening</dt><dd>${list(status.listening, "nowhere")}</dd>
      <dt>Protocols</dt><dd>${status.protocols.length === 0 ? "none" : html`<details><summary>${status.protocols.length}</summary>${list(status.protocols, "")}</details>`}</dd>
      <dt>RPC level</dt><dd>${status.version}</dd>
    </dl>
  <//>`;
}
