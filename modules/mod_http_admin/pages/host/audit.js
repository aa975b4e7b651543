/** The record of changes: who made each change, and its result. */
import { html } from "htm/preact";
import {
  Ago,
  Badge,
  Button,
  Choice,
  Dialog,
  duration,
  Empty,
  get,
  Page,
  Problem,
  Search,
  Section,
  Table,
  useAction,
  useQuery,
  useTopic,
} from "modhost/admin";
import { useEffect, useState } from "preact/hooks";
import { Plan } from "./plan.js";

/** @type {Record<string, "good" | "warn" | "bad">} */
const tones = { done: "good", refused: "warn", failed: "bad" };
/** @type {readonly (readonly [string, string])[]} */
const results = [
  ["", "Any result"],
  ["done", "Done"],
  ["refused", "Refused"],
  ["failed", "Failed"],
];

export default function Audit() {
  const [what, setWhat] = useQuery("what");
  const [by, setBy] = useQuery("by");
  const [result, setResult] = useQuery("result");
  const [page, setPage] = useState(/** @type {{ changes: any[], next?: string | undefined }} */ ({ changes: [] }));
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const load = useAction(async (/** @type {string | undefined} */ before) => {
    const more = await get("/audit", { what, by, result, before });
    setPage((previous) => ({
      changes: before === undefined ? more.changes : [...previous.changes, ...more.changes],
      next: more.next,
    }));
  });
  useEffect(() => void load.start(undefined), [what, by, result]);
  useTopic("changes", () => void load.start(undefined), [what, by, result]);
  const columns = [
    { name: "what", title: "Change", cell: (/** @type {any} */ row) => row.what },
    {
      name: "result",
      title: "Result",
      class: "fit",
      cell: (/** @type {any} */ row) => html`<${Badge} tone=${tones[row.result]}>${row.result}<//>`,
    },
    { name: "by", title: "By", cell: (/** @type {any} */ row) => `${row.by}${row.via ? ` through ${row.via}` : ""}` },
    { name: "at", title: "When", class: "fit", cell: (/** @type {any} */ row) => html`<${Ago} time=${row.at} />` },
  ];
  const actions = html`<${Search} value=${what} onInput=${setWhat} label="Change" /><${Search} value=${by} onInput=${setBy} label="Requester" />
    <${Choice} label="Result" value=${result} onChange=${setResult} choices=${results} />`;
  const empty = load.isBusy ? null : html`<${Empty} title="No recorded change matches." />`;
  return html`<${Page} title="Audit" lead="Every change of this server, the latest first" actions=${actions}>
    <${Problem} error=${load.error} />
    <${Table} label="Changes" rows=${page.changes} rowKey=${(/** @type {any} */ row) => row.id} columns=${columns} onOpen=${setShown} empty=${empty} />
    ${page.next && html`<p><${Button} isBusy=${load.isBusy} onClick=${() => load.start(page.next)}>Show earlier ones<//></p>`}
    ${shown && html`<${Detail} change=${shown} onClose=${() => setShown(undefined)} />`}
  <//>`;
}

/** @param {{ change: any, onClose: () => void }} props */
function Detail({ change, onClose }) {
  const { what, by, at, result, steps, plan, warnings = [], error } = change;
  return html`<${Dialog} title=${what} onClose=${onClose} wide>
    <dl class="facts">
      <dt>By</dt><dd>${by}</dd><dt>When</dt><dd><${Ago} time=${at} /></dd>
      <dt>Result</dt><dd><${Badge} tone=${tones[result]}>${result}<//></dd>
      ${warnings.length > 0 && html`<dt>Warnings</dt><dd class="note">${warnings.map((/** @type {string} */ text) => html`<div>${text}</div>`)}</dd>`}
      ${error && html`<dt>Why</dt><dd class="note">${error.message}${error.place && html`<br /><code>${error.place.file}:${error.place.line}</code>`}</dd>`}
    </dl>
    ${steps.length > 0 && html`<${Section} title="Steps"><ol class="plain">${steps.map((/** @type {any} */ step) => html`<li>${step.what} <span class="soft">${duration(step.ms)}</span></li>`)}</ol><//>`}
    ${plan && html`<${Section} title="Plan"><${Plan} plan=${plan} /><//>`}
  <//>`;
}
