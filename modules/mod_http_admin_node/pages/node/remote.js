/** Pins at pinning services. */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Choice,
  Confirm,
  count,
  Empty,
  Load,
  Notice,
  Page,
  post,
  printable,
  Section,
  Table,
  TextField,
  toast,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { Cid } from "../parts.js";

/** @type {Record<string, "good" | "bad" | "plain" | "warn">} */
const tones = { pinned: "good", failed: "bad" };
/** @type {readonly (readonly [string, string])[]} */
const statuses = [
  ["queued,pinning,pinned,failed", "Any status"],
  ["pinned", "Pinned"],
  ["queued,pinning", "In progress"],
  ["failed", "Failed"],
];

export default function Remote() {
  const services = useApi("/node/remote", { query: { counts: true } });
  const [service, setService] = useQuery("service");
  const [dialog, setDialog] = useState("");
  const close = () => setDialog("");
  return html`<${Page} title="Remote pins" actions=${html`<${Button} onClick=${() => setDialog("service")}>Add a service<//>`}>
    ${dialog === "service" && html`<${AddService} onDone=${services.reload} onClose=${close} />`}
    <${Load} of=${services}>${(/** @type {any[]} */ all) => {
      const empty = html`<${Empty} title="No pinning service is set up."><p>A service stores content on its own machines. You need its address and a key.</p><//>`;
      const chosen = all.find((each) => each.service === service) ?? all[0];
      return html`<${Table} label="Services" rows=${all} rowKey=${(/** @type {any} */ row) => row.service} columns=${columnsWith(services.reload)} onOpen=${(/** @type {any} */ row) => setService(row.service)} empty=${empty} />
        ${chosen && html`<${Pins} key=${chosen.service} service=${chosen.service} onChange=${services.reload} />`}`;
    }}<//>
  <//>`;
}

/** @param {() => Promise<void>} reload */
function columnsWith(reload) {
  const number = (/** @type {string} */ name) => ({
    name,
    title: name[0]?.toUpperCase() + name.slice(1),
    align: /** @type {const} */ ("end"),
    cell: (/** @type {any} */ row) => count(row.counts?.[name]),
  });
  return [
    { name: "service", title: "Service", cell: (/** @type {any} */ row) => printable(row.service) },
    {
      name: "endpoint",
      title: "Address",
      cell: (/** @type {any} */ row) =>
        html`<code>${printable(row.endpoint)}</code> ${row.is_valid === false && html`<${Badge} tone="bad">does not respond<//>`}`,
    },
    ...["queued", "pinning", "pinned", "failed"].map(number),
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) => html`<${RemoveService} service=${row.service} onDone=${reload} />`,
    },
  ];
}

/** @param {{ service: string, onDone: () => Promise<void> }} props */
function RemoveService({ service, onDone }) {
  const [isOpen, setOpen] = useState(false);
  const remove = async () => {
    await post(`/node/remote/${encodeURIComponent(service)}/remove`);
    await onDone();
  };
  return html`<${Button} kind="quiet" onClick=${() => setOpen(true)} aria-label=${`Forget ${service}`}>Forget<//>
    ${isOpen && html`<${Confirm} title=${`Forget ${service}?`} confirm="Forget" danger onConfirm=${remove} onClose=${() => setOpen(false)}><p>Its address and key are removed from the configuration. Its pins stay at the service.</p><//>`}`;
}

/** @param {{ onDone: () => Promise<void>, onClose: () => void }} props */
function AddService({ onDone, onClose }) {
  const [fields, setFields] = useState({ service: "", endpoint: "", key: "" });
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) =>
    setFields((previous) => ({ ...previous, [name]: value }));
  const add = async () => {
    await post("/node/remote", fields);
    await onDone();
  };
  return html`<${Confirm} title="Add a pinning service" confirm="Add" onConfirm=${add} onClose=${onClose}>
    <${TextField} label="Name" value=${fields.service} onInput=${set("service")} autofocus />
    <${TextField} label="Address" value=${fields.endpoint} onInput=${set("endpoint")} type="url" hint="Such as https://pin.example.org/psa" />
    <${TextField} label="Key" value=${fields.key} onInput=${set("key")} type="password" />
  <//>`;
}

/** @param {{ service: string, onChange: () => Promise<void> }} props */
function Pins({ service, onChange }) {
  const [status, setStatus] = useQuery("status", "queued,pinning,pinned,failed");
  const [dialog, setDialog] = useState(/** @type {any} */ (undefined));
  const path = `/node/remote/${encodeURIComponent(service)}/pins`;
  const pins = useApi(path, { query: { status }, every: 15_000 });
  const done = async () => {
    await Promise.all([pins.reload(), onChange()]);
  };
  const remove = async () => {
    await post(`${path}/remove`, { cid: dialog.cid, status });
    toast("The pin was removed from the service.");
    await done();
  };
  const actions = html`<${Choice} label="Status" value=${status} onChange=${setStatus} choices=${statuses} /><${Button} onClick=${() => setDialog({ isNew: true })}>Pin at the service<//>`;
  const columns = [
    { name: "cid", title: "CID", cell: (/** @type {any} */ row) => html`<${Cid} cid=${row.cid} />` },
    { name: "name", title: "Name", cell: (/** @type {any} */ row) => html`<bdi>${printable(row.name)}</bdi>` },
    {
      name: "status",
      title: "Status",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`<${Badge} tone=${tones[row.status] ?? "plain"}>${row.status || "unknown"}<//>`,
    },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`<${Button} kind="quiet" onClick=${() => setDialog(row)} aria-label=${`Remove ${row.cid} there`}>Remove<//>`,
    },
  ];
  return html`<${Section} title=${`Pins at ${service}`} actions=${actions}>
    ${dialog?.isNew && html`<${AddPin} path=${path} onDone=${done} onClose=${() => setDialog(undefined)} />`}
    ${dialog?.cid && html`<${Confirm} title="Remove the pin from the service?" confirm="Remove" danger onConfirm=${remove} onClose=${() => setDialog(undefined)}><p><code>${dialog.cid}</code></p><//>`}
    <${Load} of=${pins}>${(/** @type {any} */ page) => html`
      <${Table} label=${`Pins at ${service}`} rows=${page.pins} rowKey=${(/** @type {any} */ row) => `${row.cid} ${row.name} ${row.status}`} columns=${columns} empty=${html`<${Empty} title="No pin matches." />`} />
      ${page.has_more && html`<${Notice}>Only the first pins are shown.<//>`}
    `}<//>
  <//>`;
}

/** @param {{ path: string, onDone: () => Promise<void>, onClose: () => void }} props */
function AddPin({ path, onDone, onClose }) {
  const [what, setWhat] = useState("");
  const [name, setName] = useState("");
  const add = async () => {
    await post(path, { path: what.trim(), name: name.trim() || undefined });
    await onDone();
  };
  return html`<${Confirm} title="Pin at the service" confirm="Pin" onConfirm=${add} onClose=${onClose}>
    <${TextField} label="CID or path" value=${what} onInput=${setWhat} autofocus />
    <${TextField} label="Name" value=${name} onInput=${setName} hint="Optional" />
  <//>`;
}
