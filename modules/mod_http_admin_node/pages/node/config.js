/** The node's configuration: every key with its value, and when a change takes effect. */
import { html } from "htm/preact";
import {
  Badge,
  Choice,
  Confirm,
  Dialog,
  Empty,
  Load,
  Notice,
  Page,
  post,
  Search,
  Table,
  toast,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";

/** @type {Record<string, string>} */
const applies = { live: "at once", start: "at the next start", none: "never: this node does not use it" };
/** @type {readonly (readonly [string, string])[]} */
const choices = [
  ["", "All keys"],
  ["set", "Keys changed from the default"],
  ["waiting", "Keys that wait for a start"],
];

export default function Config() {
  const config = useApi("/node/config");
  const [search, setSearch] = useQuery("search");
  const [which, setWhich] = useQuery("which");
  const [key, setKey] = useState(/** @type {any} */ (undefined));
  const actions = html`<${Search} value=${search} onInput=${setSearch} label="Search keys" /><${Choice} label="Which" value=${which} onChange=${setWhich} choices=${choices} />`;
  return html`<${Page} title="Node configuration" lead=${config.data && html`<code>${config.data.path}</code>`} actions=${actions}>
    ${key && html`<${Edit} of=${key} onDone=${config.reload} onClose=${() => setKey(undefined)} />`}
    <${Load} of=${config}>${(/** @type {any} */ { keys, waiting }) => {
      const waits = new Map(waiting.map((/** @type {any} */ each) => [each.key, each.reason]));
      const rows = keys.filter((/** @type {any} */ row) => {
        if (which === "set" && row.value === row.default) return false;
        if (which === "waiting" && !waits.has(row.key)) return false;
        return `${row.key} ${row.help}`.toLowerCase().includes(search.toLowerCase());
      });
      return html`${waiting.length > 0 && html`<${Notice} tone="warn"><p>Saved, but not in force yet: ${waiting.map((/** @type {any} */ each) => html`<code>${each.key}</code>${each.reason ? ` (${each.reason})` : ""} `)}</p><//>`}
        <${Table} label="Keys of the config" rows=${rows} rowKey=${(/** @type {any} */ row) => row.key} columns=${columns} onOpen=${setKey} empty=${html`<${Empty} title="No key matches." />`} />`;
    }}<//>
  <//>`;
}

const columns = [
  {
    name: "key",
    title: "Key",
    sort: (/** @type {any} */ row) => row.key,
    cell: (/** @type {any} */ row) => html`<code>${row.key}</code>`,
  },
  {
    name: "value",
    title: "Value",
    class: "one-line",
    cell: (/** @type {any} */ row) =>
      row.is_secret
        ? html`<span class="soft">secret</span>`
        : row.value !== undefined && html`<code>${row.value}</code>`,
  },
  {
    name: "applies",
    title: "A change applies",
    sort: (/** @type {any} */ row) => row.applies,
    cell: (/** @type {any} */ row) =>
      html`<${Badge} tone=${row.applies === "live" ? "good" : "plain"}>${row.applies === "live" ? "at once" : row.applies === "start" ? "next start" : "never"}<//>`,
  },
];

/** @param {{ of: any, onDone: () => Promise<void>, onClose: () => void }} props */
function Edit({ of, onDone, onClose }) {
  const [text, setText] = useState(pretty(of.value ?? ""));
  const save = async () => {
    const set = await post("/node/config", { key: of.key, value: text });
    toast(
      set.is_in_force
        ? `${of.key} is in force.`
        : `${of.key} is saved. ${set.reason ?? "It waits for the next start."}`,
      set.is_in_force ? "good" : "warn",
    );
    await onDone();
  };
  const facts = html`<p>${of.help}</p>
    <dl class="facts"><dt>Type</dt><dd>${of.type}</dd>${of.default !== undefined && html`<dt>In a new repo</dt><dd><code>${of.default}</code></dd>`}<dt>A change applies</dt><dd>${applies[of.applies]}</dd></dl>`;
  if (of.is_secret)
    return html`<${Dialog} title=${of.key} onClose=${onClose}>${facts}<p>This key is a secret. It can be neither shown nor set here.</p><//>`;
  return html`<${Confirm} title=${of.key} confirm="Set" onConfirm=${save} onClose=${onClose}>${facts}
    <textarea class="code small" aria-label=${`Value of ${of.key}, as JSON`} spellcheck=${false} value=${text} onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)}></textarea>
    <p class="soft">As JSON: <code>"text"</code>, <code>true</code>, <code>["a", "b"]</code></p>
  <//>`;
}

/** @param {string} json */
function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}
