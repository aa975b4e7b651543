/** Long-running jobs with their progress. They continue when nobody watches. */
import { html } from "htm/preact";
import {
  Ago,
  Badge,
  Button,
  count,
  Meter,
  Problem,
  post,
  Section,
  size,
  Table,
  useAction,
  useApi,
  useTopic,
} from "modhost/admin";
import { useState } from "preact/hooks";

/** @type {Record<string, "good" | "bad" | "plain" | "warn">} */
const tones = { running: "plain", done: "good", failed: "bad", cancelled: "warn" };

/** Returns jobs by id: the loaded jobs, replaced by newer events. */
function useJobs() {
  const past = useApi("/node/jobs", { topic: "" });
  const [moved, setMoved] = useState(/** @type {Map<string, any>} */ (new Map()));
  useTopic("node_jobs", (job) => setMoved((previous) => new Map(previous).set(job.id, job)));
  const all = new Map((past.data ?? []).map((/** @type {any} */ job) => [job.id, job]));
  for (const [id, job] of moved) all.set(id, job);
  return [...all.values()].sort((a, b) => b.began.localeCompare(a.began));
}

/** @param {{ kind?: string }} props only jobs of this kind that are not done */
export function Jobs({ kind }) {
  const jobs = useJobs().filter((job) => kind === undefined || (job.kind === kind && job.state !== "done"));
  if (jobs.length === 0) return null;
  return html`<${Section} title="Jobs">
    <${Table} label="Jobs" rows=${jobs.slice(0, 20)} rowKey=${(/** @type {any} */ job) => job.id} columns=${columns} />
    ${jobs.some(({ state }) => state === "running") && html`<p class="soft">A job continues when you leave this page. Reloading the module http_admin_node, or node, ends it.</p>`}
  <//>`;
}

const columns = [
  {
    name: "what",
    title: "Job",
    class: "one-line",
    cell: (/** @type {any} */ job) => html`<span title=${job.what}>${job.what}</span>`,
  },
  {
    name: "state",
    title: "State",
    class: "fit",
    cell: (/** @type {any} */ job) => html`<${Badge} tone=${tones[job.state]}>${job.state}<//>`,
  },
  { name: "progress", title: "Progress", cell: (/** @type {any} */ job) => html`<${Progress} job=${job} />` },
  { name: "began", title: "Began", class: "fit", cell: (/** @type {any} */ job) => html`<${Ago} time=${job.began} />` },
  {
    name: "do",
    title: "",
    class: "fit",
    cell: (/** @type {any} */ job) => job.state === "running" && html`<${Cancel} job=${job} />`,
  },
];

/** @param {{ job: any }} props */
function Progress({ job: { kind, progress, state, error, result, what } }) {
  if (state === "failed") return html`<span class="bad-text">${error}</span>`;
  const { done, total, unit } = progress;
  const units = (total ?? done) === 1 ? unit.replace(/s$/, "") : unit;
  const text = `${count(done)}${total === undefined ? "" : ` of ${count(total)}`} ${units}${kind === "gc" ? " removed" : ""}`;
  if (state === "running" && total !== undefined)
    return html`${text}<${Meter} value=${done} max=${total} label=${`Progress of ${what}`} />`;
  const freed = result?.freed === undefined ? "" : `, freed ${size(result.freed)}`;
  return html`${text}${freed}`;
}

/** @param {{ job: any }} props */
function Cancel({ job }) {
  const cancel = useAction(() => post(`/node/jobs/${encodeURIComponent(job.id)}/cancel`));
  return html`<${Button} kind="quiet" isBusy=${cancel.isBusy} onClick=${cancel.start} aria-label=${`Cancel ${job.what}`}>Cancel<//><${Problem} error=${cancel.error} />`;
}
