/** The keys, and what is published under their names. */
import { html } from "htm/preact";
import {
  addressOf,
  ask,
  Button,
  Choice,
  Confirm,
  Copy,
  Empty,
  get,
  Load,
  Page,
  Problem,
  post,
  printable,
  Section,
  Table,
  TextField,
  toast,
  useAction,
  useApi,
} from "modhost/admin";
import { useState } from "preact/hooks";

/** @type {readonly (readonly [string, string])[]} */
const types = [
  ["ed25519", "Ed25519"],
  ["rsa", "RSA, 2,048 bits"],
];

export default function Keys() {
  const keys = useApi("/node/keys");
  const [dialog, setDialog] = useState(/** @type {any} */ (undefined));
  const props = { onDone: keys.reload, onClose: () => setDialog(undefined) };
  const actions = html`<${Button} onClick=${() => setDialog({ kind: "import" })}>Import<//><${Button} kind="primary" onClick=${() => setDialog({ kind: "new" })}>New key<//>`;
  const Shown = dialog && dialogs[/** @type {keyof typeof dialogs} */ (dialog.kind)];
  return html`<${Page} title="Keys and names" actions=${actions}>
    ${Shown && html`<${Shown} of=${dialog.of} ...${props} />`}
    <${Load} of=${keys}>${(/** @type {any[]} */ rows) => html`<${Table} label="Keys" rows=${rows} rowKey=${(/** @type {any} */ row) => row.name} sortBy="name" columns=${columnsWith(setDialog)} empty=${html`<${Empty} title="There is no key." />`} />`}<//>
    <${Resolve} />
  <//>`;
}

/** @param {(dialog: any) => void} open */
function columnsWith(open) {
  const button = (/** @type {any} */ of, /** @type {string} */ kind, /** @type {string} */ text) =>
    html`<${Button} kind="quiet" onClick=${() => open({ kind, of })} aria-label=${`${text} ${of.name}`}>${text}<//>`;
  return [
    {
      name: "name",
      title: "Key",
      sort: (/** @type {any} */ row) => row.name,
      cell: (/** @type {any} */ row) => html`<bdi>${printable(row.name)}</bdi>`,
    },
    {
      name: "id",
      title: "Name",
      cell: (/** @type {any} */ row) => html`<${Copy} text=${`/ipns/${row.id}`}>${row.id.slice(0, 16)}…<//>`,
    },
    {
      name: "value",
      title: "Published",
      cell: (/** @type {any} */ row) =>
        row.value ? html`<code>${row.value}</code>` : html`<span class="soft">nothing</span>`,
    },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`${button(row, "publish", "Publish")} ${button(row, "export", "Export")} ${!row.is_self && html`${button(row, "rename", "Rename")} ${button(row, "remove", "Remove")}`}`,
    },
  ];
}

/** @typedef {{ of: any, onDone: () => Promise<void>, onClose: () => void }} DialogProps */

const dialogs = { new: NewKey, import: ImportKey, publish: Publish, rename: Rename, remove: Remove, export: Export };

/** @param {DialogProps} props */
function NewKey({ onDone, onClose }) {
  const [name, setName] = useState("");
  const [type, setType] = useState("ed25519");
  const make = async () => {
    await post("/node/keys", { name: name.trim(), type });
    await onDone();
  };
  return html`<${Confirm} title="New key" confirm="Create" onConfirm=${make} onClose=${onClose}>
    <${TextField} label="Name" value=${name} onInput=${setName} autofocus /><${Choice} label="Type" value=${type} onChange=${setType} choices=${types} />
  <//>`;
}

/** @param {DialogProps} props */
function ImportKey({ onDone, onClose }) {
  const [name, setName] = useState("");
  const [file, setFile] = useState(/** @type {File | undefined} */ (undefined));
  const send = async () => {
    if (file === undefined) throw new Error("Choose the file of the key.");
    const response = await ask(addressOf(`/node/keys/${encodeURIComponent(name.trim())}/import`), {
      method: "POST",
      body: file,
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    await onDone();
  };
  return html`<${Confirm} title="Import a key" confirm="Import" onConfirm=${send} onClose=${onClose}>
    <${TextField} label="Name" value=${name} onInput=${setName} autofocus />
    <input type="file" aria-label="File of the key" onChange=${(/** @type {any} */ event) => setFile(event.currentTarget.files[0])} />
  <//>`;
}

/** @param {DialogProps} props */
function Publish({ of, onDone, onClose }) {
  const [path, setPath] = useState(of.value ?? "");
  const [lifetime, setLifetime] = useState("24h");
  const publish = async () => {
    const { value } = await post("/node/names/publish", {
      path: path.trim(),
      key: of.name,
      lifetime,
      allow_offline: true,
    });
    toast(`${of.name} now leads to ${value}.`);
    await onDone();
  };
  return html`<${Confirm} title=${`Publish under ${of.name}`} confirm="Publish" onConfirm=${publish} onClose=${onClose}>
    <${TextField} label="CID or path" value=${path} onInput=${setPath} autofocus />
    <${TextField} label="Valid for" value=${lifetime} onInput=${setLifetime} hint="The node publishes it again while it runs" />
  <//>`;
}

/** @param {DialogProps} props */
function Rename({ of, onDone, onClose }) {
  const [to, setTo] = useState(of.name);
  const rename = async () => {
    await post(`/node/keys/${encodeURIComponent(of.name)}/rename`, { to: to.trim() });
    await onDone();
  };
  return html`<${Confirm} title=${`Rename ${of.name}`} confirm="Rename" onConfirm=${rename} onClose=${onClose}><${TextField} label="Name" value=${to} onInput=${setTo} autofocus /><//>`;
}

/** @param {DialogProps} props */
function Remove({ of, onDone, onClose }) {
  const remove = async () => {
    await post(`/node/keys/${encodeURIComponent(of.name)}/remove`);
    await onDone();
  };
  return html`<${Confirm} title=${`Remove ${of.name}?`} confirm="Remove" danger onConfirm=${remove} onClose=${onClose}>
    <p>Publishing under its name then needs a copy of the key. Export the key first if you may need it.</p>
  <//>`;
}

/** @param {DialogProps} props */
function Export({ of, onClose }) {
  const save = async () => {
    const response = await ask(addressOf(`/node/keys/${encodeURIComponent(of.name)}/export`), { method: "POST" });
    if (!response.ok) throw new Error((await response.json()).error.message);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = `${of.name}.key`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return html`<${Confirm} title=${`Export ${of.name}?`} confirm="Export" onConfirm=${save} onClose=${onClose}>
    <p>The file contains the private key. Everybody who has it can publish under this name.</p>
  <//>`;
}

function Resolve() {
  const [name, setName] = useState("");
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const resolve = useAction(async () => setFound(await get("/node/names/resolve", { name: name.trim() })));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setFound(undefined);
    void resolve.start();
  };
  return html`<${Section} title="Resolve a name">
    <form class="row" onSubmit=${submit}>
      <${TextField} label="Name" value=${name} onInput=${setName} hint="Such as /ipns/k51… or example.org" />
      <${Button} type="submit" isBusy=${resolve.isBusy} disabled=${name.trim() === ""}>Resolve<//>
    </form>
    <${Problem} error=${resolve.error} />
    ${found && html`<p>${printable(found.name)} leads to <${Copy} text=${found.value} /></p>`}
  <//>`;
}
