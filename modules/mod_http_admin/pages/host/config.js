/**
 * The configuration: every option with its value and source, and an editor for the file that checks
 * and applies it.
 */
import { html } from "htm/preact";
import {
  Badge,
  Button,
  Choice,
  Dialog,
  Empty,
  Link,
  Load,
  Notice,
  Page,
  Problem,
  post,
  Search,
  Section,
  Table,
  toast,
  useAction,
  useApi,
  useQuery,
} from "modhost/admin";
import { useEffect, useState } from "preact/hooks";
import { failureOf } from "./change.js";
import { Plan } from "./plan.js";

/** @type {Record<string, string>} */
const sources = {
  file: "Config file",
  environment: "Environment",
  caller: "Command line",
  default: "Default",
  unset: "Not set",
};
/** @type {readonly (readonly [string, string])[]} */
const choices = [
  ["", "All options"],
  ["set", "Options that are set"],
  ["waiting", "Options that wait for a start"],
];

/** @param {{ rest: string }} props */
export default function Config({ rest }) {
  return rest === "file" ? html`<${Editor} />` : html`<${Options} />`;
}

function Options() {
  const config = useApi("/config");
  const [search, setSearch] = useQuery("search");
  const [which, setWhich] = useQuery("which");
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const actions = html`<${Search} value=${search} onInput=${setSearch} label="Search options" />
    <${Choice} label="Which" value=${which} onChange=${setWhich} choices=${choices} />
    <${Link} to="config/file" class="button">Edit the file<//>`;
  return html`<${Page} title="Configuration" actions=${actions}>
    <${Load} of=${config}>${(/** @type {any[]} */ all) => {
      const rows = all.filter(
        (row) =>
          isShown(row, which) && `${row.name} ${row.describe ?? ""}`.toLowerCase().includes(search.toLowerCase()),
      );
      return html`<${Table} label="Options" rows=${rows} rowKey=${(/** @type {any} */ row) => row.name} sortBy="name" columns=${columns} onOpen=${setShown}
        empty=${html`<${Empty} title="No option matches." />`} />`;
    }}<//>
    ${shown && html`<${Option} option=${shown} onClose=${() => setShown(undefined)} />`}
  <//>`;
}

/** @param {any} option @param {string} which */
function isShown({ source, hosts, is_waiting: isWaiting = false }, which) {
  if (which === "set") return (source !== "default" && source !== "unset") || hosts.length > 0;
  return which !== "waiting" || isWaiting;
}

const columns = [
  {
    name: "name",
    title: "Option",
    sort: (/** @type {any} */ row) => row.name,
    cell: (/** @type {any} */ row) => html`<code>${row.name}</code>`,
  },
  {
    name: "value",
    title: "Value",
    class: "one-line",
    cell: (/** @type {any} */ row) =>
      html`${row.value !== undefined && html`<code>${row.value}</code>`} ${row.is_waiting && html`<${Badge} tone="warn">waits for a start<//>`}`,
  },
  {
    name: "source",
    title: "From",
    sort: (/** @type {any} */ row) => row.source,
    cell: (/** @type {any} */ row) => sources[row.source],
  },
  {
    name: "owner",
    title: "Module",
    sort: (/** @type {any} */ row) => row.owner ?? "",
    cell: (/** @type {any} */ row) => row.owner ?? "nobody",
  },
];

/** @param {{ option: any, onClose: () => void }} props */
function Option({ option, onClose }) {
  const { name, describe, type, value, source, variable, applies, hosts, values, owner } = option;
  return html`<${Dialog} title=${name} onClose=${onClose} wide>
    <p>${describe ?? "No loaded module declares this option. The name is misspelt, or its module is not loaded."}</p>
    <dl class="facts">
      <dt>Value</dt><dd>${value === undefined ? "not set" : html`<code>${value}</code>`} (${sources[source]})</dd>
      ${option.default !== undefined && html`<dt>Default</dt><dd><code>${option.default}</code></dd>`}
      ${type && html`<dt>Type</dt><dd>${type}${values ? `: ${values.join(", ")}` : ""}</dd>`}
      <dt>A change applies</dt><dd>${applies === "start" ? "at the next start" : "at once"}</dd>
      <dt>Variable</dt><dd><code>${variable}</code></dd>
      <dt>Declared by</dt><dd>${owner ?? "nobody"}</dd>
      ${hosts.map((/** @type {any} */ each) => html`<dt>On ${each.host}</dt><dd><code>${each.value}</code></dd>`)}
    </dl>
  <//>`;
}

function Editor() {
  const file = useApi("/config/file", { topic: "" });
  const [text, setText] = useState("");
  const [check, setCheck] = useState(/** @type {any} */ (undefined));
  const [failure, setFailure] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    if (file.data?.text !== undefined) setText(file.data.text);
  }, [file.data]);
  const checkAction = useAction(async () => {
    setFailure(undefined);
    setCheck(await post("/config/check", { text }));
  });
  const saved = useAction(async () => {
    try {
      await post("/config/file", { text, etag: file.data.etag });
      toast("The configuration is saved and in force.");
      setCheck(undefined);
      await file.reload();
    } catch (error) {
      setFailure(failureOf(error));
    }
  });
  const isChanged = file.data?.text !== undefined && text !== file.data.text;
  const isRight = check?.faults.length === 0;
  const edit = (/** @type {any} */ event) => {
    setText(event.currentTarget.value);
    setCheck(undefined);
    setFailure(undefined);
  };
  return html`<${Page} title="Config file" lead=${html`<${Link} to="config">All options<//>`}>
    <${Load} of=${file}>${(/** @type {any} */ data) => html`
      ${data.path && html`<p><code>${data.path}</code></p>`}
      ${!data.is_editable && html`<${Notice} tone="warn">${data.reason ?? "This file cannot be edited here."}<//>`}
      ${data.text !== undefined && html`<textarea class="code" aria-label="Text of the config file" spellcheck=${false} readonly=${!data.is_editable} value=${text} onInput=${edit}></textarea>`}
      ${
        data.is_editable &&
        html`<div class="actions">
          <${Button} kind=${isRight ? "plain" : "primary"} isBusy=${checkAction.isBusy} disabled=${!isChanged} onClick=${checkAction.start}>Check<//>
          <${Button} kind=${isRight ? "primary" : "plain"} isBusy=${saved.isBusy} disabled=${!isChanged || !isRight} onClick=${saved.start}>Save and apply<//>
          <${Button} disabled=${!isChanged} onClick=${() => {
            setText(data.text);
            setCheck(undefined);
          }}>Discard my changes<//>
        </div>`
      }
      <${Problem} error=${checkAction.error} />
      ${failure && html`<${Notice} tone="bad"><p><strong>Not applied. The previous configuration stays in force.</strong> ${failure.message}</p><//>`}
      ${check && html`<${Checked} check=${check} />`}
    `}<//>
  <//>`;
}

/** @param {{ check: any }} props */
function Checked({ check: { faults, warnings, plan } }) {
  if (faults.length > 0)
    return html`<${Section} title="This text cannot be applied"><${Faults} faults=${faults} tone="bad" /><//>`;
  return html`<${Section} title="This would change"><${Faults} faults=${warnings} tone="warn" /><${Plan} plan=${plan} /><//>`;
}

/** @param {{ faults: any[], tone: "warn" | "bad" }} props */
const Faults = ({ faults, tone }) =>
  faults.map(
    ({ message, path, line, column }) =>
      html`<${Notice} tone=${tone}><p>${line && html`<strong>Line ${line}${column ? `, column ${column}` : ""}.</strong> `}${path && !message.includes(path) && html`<code>${path}</code>: `}${message}</p><//>`,
  );
