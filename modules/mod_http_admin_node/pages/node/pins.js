/** The pins, which protect blocks from garbage collection. */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Choice,
  Confirm,
  counted,
  Empty,
  Load,
  Page,
  post,
  printable,
  Search,
  Table,
  TextField,
  toast,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { Cid, Pager } from "../parts.js";
import { Jobs } from "./jobs.js";

const PAGE = 100;
/** @type {readonly (readonly [string, string])[]} */
const types = [
  ["", "All pins"],
  ["recursive", "Recursive"],
  ["direct", "Direct"],
];

export default function Pins() {
  const [search, setSearch] = useQuery("search");
  const [type, setType] = useQuery("type");
  const [offset, setOffset] = useQuery("offset", "0");
  const [dialog, setDialog] = useState(/** @type {any} */ (undefined));
  const pins = useApi("/node/pins", { query: { search, type, offset, limit: PAGE }, topic: "node_jobs" });
  const find = (/** @type {string} */ text) => {
    setSearch(text);
    setOffset("0");
  };
  const close = () => setDialog(undefined);
  const done = async () => {
    await pins.reload();
  };
  const actions = html`<${Search} value=${search} onInput=${find} label="Name or CID" /><${Choice} label="Type" value=${type} onChange=${setType} choices=${types} />
    <${Button} kind="primary" onClick=${() => setDialog({ kind: "add" })}>Pin<//>`;
  return html`<${Page} title="Pins" lead=${pins.data && counted(pins.data.total, "pin")} actions=${actions}>
    ${dialog?.kind === "add" && html`<${Add} onClose=${close} />`}
    ${dialog?.kind === "rename" && html`<${Rename} pin=${dialog.pin} onDone=${done} onClose=${close} />`}
    ${dialog?.kind === "remove" && html`<${Remove} pin=${dialog.pin} onDone=${done} onClose=${close} />`}
    <${Jobs} kind="pin" />
    <${Load} of=${pins}>${(/** @type {any} */ { total, pins: rows }) => {
      const empty = html`<${Empty} title=${search === "" && type === "" ? "Nothing is pinned." : "No pin matches."}><p>The next garbage collection removes blocks that are neither pinned nor in Files.</p><//>`;
      return html`<${Table} label="Pins" rows=${rows} rowKey=${(/** @type {any} */ row) => row.cid} columns=${columnsWith(setDialog)} empty=${empty} />
        <${Pager} label="Pages of pins" size=${PAGE} total=${total} offset=${Number(offset)} onMove=${(/** @type {number} */ to) => setOffset(String(to))} />`;
    }}<//>
  <//>`;
}

/** @param {(dialog: any) => void} open */
function columnsWith(open) {
  return [
    { name: "cid", title: "CID", cell: (/** @type {any} */ row) => html`<${Cid} cid=${row.cid} />` },
    { name: "name", title: "Name", cell: (/** @type {any} */ row) => html`<bdi>${printable(row.name)}</bdi>` },
    { name: "type", title: "Type", class: "fit", cell: (/** @type {any} */ row) => html`<${Badge}>${row.type}<//>` },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (
        /** @type {any} */ pin,
      ) => html`<${Button} kind="quiet" onClick=${() => open({ kind: "rename", pin })} aria-label=${`Rename the pin ${pin.cid}`}>Rename<//>
        <${Button} kind="quiet" onClick=${() => open({ kind: "remove", pin })} aria-label=${`Remove the pin ${pin.cid}`}>Remove<//>`,
    },
  ];
}

/** @param {{ onClose: () => void }} props */
function Add({ onClose }) {
  const [path, setPath] = useState("");
  const [name, setName] = useState("");
  const add = async () => {
    await post("/node/pins", { path: path.trim(), name: name.trim() || undefined });
    toast("The fetching and pinning has begun.", "plain");
  };
  return html`<${Confirm} title="Pin" confirm="Pin" onConfirm=${add} onClose=${onClose}>
    <${TextField} label="CID or path" value=${path} onInput=${setPath} hint="Such as bafy…, /ipfs/bafy…/a/b or /ipns/example.org" autofocus />
    <${TextField} label="Name" value=${name} onInput=${setName} hint="For people, so that they can find the pin; optional" />
  <//>`;
}

/** @param {{ pin: any, onDone: () => Promise<void>, onClose: () => void }} props */
function Rename({ pin, onDone, onClose }) {
  const [name, setName] = useState(pin.name);
  const rename = async () => {
    await post(`/node/pins/${pin.cid}/rename`, { name: name.trim() });
    await onDone();
  };
  return html`<${Confirm} title="Rename the pin" confirm="Rename" onConfirm=${rename} onClose=${onClose}>
    <p><code>${pin.cid}</code></p><${TextField} label="Name" value=${name} onInput=${setName} hint="Empty for none" autofocus />
  <//>`;
}

/** @param {{ pin: any, onDone: () => Promise<void>, onClose: () => void }} props */
function Remove({ pin, onDone, onClose }) {
  const remove = async () => {
    await post(`/node/pins/${pin.cid}/remove`);
    toast("The pin was removed.");
    await onDone();
  };
  return html`<${Confirm} title="Remove the pin?" confirm="Remove" danger onConfirm=${remove} onClose=${onClose}>
    <p>${pin.name && html`<strong>${printable(pin.name)}</strong> `}<code>${pin.cid}</code></p>
    <p>Its blocks stay until the next garbage collection, and longer if another pin or file contains them.</p>
  <//>`;
}
