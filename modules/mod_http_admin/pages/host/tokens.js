/** The tokens: their scopes and use; creates and revokes them. */
import { html } from "htm/preact";
import {
  Ago,
  Badge,
  Button,
  Confirm,
  Copy,
  compact,
  Dialog,
  Empty,
  Load,
  Notice,
  Page,
  Problem,
  post,
  size,
  Table,
  TextField,
  toast,
  useAction,
  useApi,
} from "modhost/admin";
import { useState } from "preact/hooks";

export default function Tokens() {
  const tokens = useApi("/tokens", { every: 15_000 });
  const [isMaking, setMaking] = useState(false);
  const [leaving, setLeaving] = useState(/** @type {any} */ (undefined));
  const revoke = async () => {
    await post(`/tokens/${encodeURIComponent(leaving.id)}/revoke`);
    toast(`The token ${leaving.name} was revoked.`);
    await tokens.reload();
  };
  const empty = html`<${Empty} title="There are no tokens."><p>Programs and people on other machines need a token. Requests from this machine do not.</p><//>`;
  return html`<${Page} title="Tokens" actions=${html`<${Button} kind="primary" onClick=${() => setMaking(true)}>New token<//>`}>
    ${isMaking && html`<${NewToken} onMade=${tokens.reload} onClose=${() => setMaking(false)} />`}
    ${
      leaving &&
      html`<${Confirm} title=${`Revoke ${leaving.name}?`} confirm="Revoke" danger onConfirm=${revoke} onClose=${() => setLeaving(undefined)}>
        <p>Its open requests are cut, and later ones are refused. This cannot be undone.</p>
      <//>`
    }
    <${Load} of=${tokens}>${(/** @type {any[]} */ rows) => html`<${Table} label="Tokens" rows=${rows} rowKey=${(/** @type {any} */ row) => row.id} sortBy="name" columns=${columnsWith(setLeaving)} empty=${empty} />`}<//>
  <//>`;
}

/** @param {(token: any) => void} revoke */
function columnsWith(revoke) {
  return [
    {
      name: "name",
      title: "Name",
      sort: (/** @type {any} */ row) => row.name,
      cell: (/** @type {any} */ row) => html`${row.name} ${row.is_expired && html`<${Badge} tone="warn">expired<//>`}`,
    },
    {
      name: "scopes",
      title: "Opens",
      cell: (/** @type {any} */ row) =>
        row.scopes.map(
          (/** @type {string} */ scope) =>
            html`<code>${scope}</code> ${row.undeclared_scopes?.includes(scope) && html`<${Badge} tone="warn">not declared by a loaded module<//> `}`,
        ),
    },
    {
      name: "expires",
      title: "Expires",
      cell: (/** @type {any} */ row) => (row.expires ? html`<${Ago} time=${row.expires} />` : "never"),
    },
    {
      name: "limits",
      title: "Limits",
      cell: (/** @type {any} */ row) =>
        [row.rate, row.bytes_in && `in ${row.bytes_in}`, row.bytes_out && `out ${row.bytes_out}`]
          .filter(Boolean)
          .join(", "),
    },
    {
      name: "used",
      title: "Last used",
      sort: (/** @type {any} */ row) => row.last_used ?? "",
      cell: (/** @type {any} */ row) => (row.last_used ? html`<${Ago} time=${row.last_used} />` : "never"),
    },
    {
      name: "requests",
      title: "Requests",
      align: /** @type {const} */ ("end"),
      sort: (/** @type {any} */ row) => row.requests,
      cell: (/** @type {any} */ row) =>
        html`<span title=${`received ${size(row.received)}, sent ${size(row.sent)}`}>${compact(row.requests)}</span>`,
    },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`<${Button} kind="quiet" onClick=${() => revoke(row)} aria-label=${`Revoke ${row.name}`}>Revoke<//>`,
    },
  ];
}

/** @param {{ onMade: () => Promise<void>, onClose: () => void }} props */
function NewToken({ onMade, onClose }) {
  const [fields, setFields] = useState({ name: "", scopes: "", expires: "30d", rate: "" });
  const [secret, setSecret] = useState("");
  const { data: forms = [] } = useApi("/tokens/scopes");
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) =>
    setFields((previous) => ({ ...previous, [name]: value }));
  const make = useAction(async () => {
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value.trim() !== ""));
    const made = await post("/tokens", given);
    setSecret(made.secret);
    await onMade();
  });
  if (secret !== "") {
    return html`<${Dialog} title=${`The token ${fields.name}`} onClose=${onClose} actions=${html`<${Button} kind="primary" onClick=${onClose}>I have saved it<//>`}>
      <${Notice} tone="warn">This is the only time that the secret is shown.<//>
      <p><${Copy} text=${secret} /></p>
    <//>`;
  }
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void make.start();
  };
  const actions = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="new-token" isBusy=${make.isBusy}>Create<//>`;
  return html`<${Dialog} title="New token" onClose=${onClose} actions=${actions}>
    <form id="new-token" onSubmit=${submit}>
      <${TextField} label="Name" value=${fields.name} onInput=${set("name")} hint="Its name in lists, logs and records" autofocus />
      <${TextField} label="Scopes" value=${fields.scopes} onInput=${set("scopes")} hint="Separated by commas, such as app:chat, admin:read" />
      <details>
        <summary>All forms</summary>
        <dl class="facts">${forms.map((/** @type {any} */ { form, help }) => html`<dt>${form}</dt><dd>${help}</dd>`)}</dl>
      </details>
      <${TextField} label="Expires" value=${fields.expires} onInput=${set("expires")} hint="30d, 12h or a date; empty: never" />
      <${TextField} label="Rate" value=${fields.rate} onInput=${set("rate")} hint="Maximum rate of requests, such as 10/s or 600/m; empty: no limit" />
      <${Problem} error=${make.error} />
    </form>
  <//>`;
}
