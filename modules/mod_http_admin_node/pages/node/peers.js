/** The peers: their identity, latency and open streams. */
import { html } from "htm/preact";
import {
  Ago,
  Badge,
  Button,
  Confirm,
  Copy,
  counted,
  Dialog,
  duration,
  Empty,
  Load,
  Page,
  post,
  printable,
  Search,
  Section,
  Table,
  TextField,
  toast,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { Offline, shortened } from "../parts.js";

export default function Peers() {
  const list = useApi("/node/peers", { every: 5000, topic: "" });
  const [search, setSearch] = useQuery("search");
  const [isConnecting, setConnecting] = useState(false);
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const actions = html`<${Search} value=${search} onInput=${setSearch} label="Search peers" /><${Button} onClick=${() => setConnecting(true)}>Connect to a peer<//>`;
  return html`<${Page} title="Peers" lead=${list.data && counted(list.data.peers.length, "connection")} actions=${actions}>
    ${isConnecting && html`<${Connect} onDone=${list.reload} onClose=${() => setConnecting(false)} />`}
    ${shown && html`<${Peer} peer=${shown} onDone=${list.reload} onClose=${() => setShown(undefined)} />`}
    <${Load} of=${list}>${(/** @type {any} */ data) => {
      const rows = data.peers.filter((/** @type {any} */ { id, address, agent }) =>
        `${id} ${address} ${agent}`.toLowerCase().includes(search.toLowerCase()),
      );
      const empty = html`<${Empty} title=${search === "" ? "No peer is connected." : "No id, address or agent matches."} />`;
      return html`<${Offline} online=${data.online} />
        <${Table} label="Peers" rows=${rows} rowKey=${(/** @type {any} */ row) => `${row.id} ${row.address}`} sortBy="opened" columns=${columns} onOpen=${setShown} empty=${empty} />`;
    }}<//>
  <//>`;
}

const columns = [
  {
    name: "id",
    title: "Peer",
    sort: (/** @type {any} */ row) => row.id,
    cell: (/** @type {any} */ row) => html`<code title=${row.id}>${shortened(row.id)}</code>`,
  },
  {
    name: "agent",
    title: "Agent",
    sort: (/** @type {any} */ row) => row.agent,
    cell: (/** @type {any} */ row) => html`<bdi>${printable(row.agent)}</bdi>`,
  },
  {
    name: "address",
    title: "Address",
    sort: (/** @type {any} */ row) => row.address,
    cell: (/** @type {any} */ row) => html`<code>${printable(row.address)}</code>`,
  },
  {
    name: "direction",
    title: "Direction",
    sort: (/** @type {any} */ row) => row.direction,
    cell: (/** @type {any} */ row) => html`<${Badge}>${row.direction}<//>`,
  },
  {
    name: "latency",
    title: "Latency",
    align: /** @type {const} */ ("end"),
    sort: (/** @type {any} */ row) => row.latency ?? -1,
    cell: (/** @type {any} */ row) => duration(row.latency),
  },
  {
    name: "streams",
    title: "Streams",
    align: /** @type {const} */ ("end"),
    sort: (/** @type {any} */ row) => row.streams.length,
    cell: (/** @type {any} */ row) => row.streams.length,
  },
  {
    name: "opened",
    title: "Connected",
    class: "fit",
    sort: (/** @type {any} */ row) => row.opened,
    cell: (/** @type {any} */ row) => html`<${Ago} time=${row.opened} />`,
  },
];

/** @param {{ onDone: () => Promise<void>, onClose: () => void }} props */
function Connect({ onDone, onClose }) {
  const [address, setAddress] = useState("");
  const connect = async () => {
    const { message } = await post("/node/peers/connect", { address: address.trim() });
    toast(message);
    await onDone();
  };
  return html`<${Confirm} title="Connect to a peer" confirm="Connect" onConfirm=${connect} onClose=${onClose}>
    <${TextField} label="Address" value=${address} onInput=${setAddress} hint="Such as /ip4/192.0.2.7/tcp/4001/p2p/12D3Koo…, or /p2p/12D3Koo… if the node should find the address" autofocus />
  <//>`;
}

/** @param {{ peer: any, onDone: () => Promise<void>, onClose: () => void }} props */
function Peer({ peer, onDone, onClose }) {
  const [isLeaving, setLeaving] = useState(false);
  const leave = async () => {
    const { message } = await post("/node/peers/disconnect", { address: `${peer.address}/p2p/${peer.id}` });
    toast(message);
    await onDone();
    onClose();
  };
  const actions = html`<${Button} kind="danger" onClick=${() => setLeaving(true)}>Disconnect<//><${Button} onClick=${onClose}>Close<//>`;
  if (isLeaving)
    return html`<${Confirm} title="Disconnect this peer?" confirm="Disconnect" danger onConfirm=${leave} onClose=${() => setLeaving(false)}><p><code>${peer.id}</code></p><p>The peer may connect again.</p><//>`;
  return html`<${Dialog} title="Peer" onClose=${onClose} actions=${actions} wide>
    <dl class="facts">
      <dt>Id</dt><dd><${Copy} text=${peer.id} /></dd>
      <dt>Address</dt><dd><${Copy} text=${peer.address} /></dd>
      <dt>Agent</dt><dd><bdi>${printable(peer.agent) || "not known yet"}</bdi></dd>
      <dt>Transport</dt><dd>${peer.transport}, ${peer.direction}</dd>
      <dt>Latency</dt><dd>${duration(peer.latency) || "not measured"}</dd>
      <dt>Connected</dt><dd><${Ago} time=${peer.opened} /></dd>
    </dl>
    <${Section} title="Streams">${peer.streams.length === 0 ? html`<p class="soft">None is open.</p>` : html`<ul class="plain">${peer.streams.map((/** @type {string} */ protocol) => html`<li><code>${printable(protocol)}</code></li>`)}</ul>`}<//>
  <//>`;
}
