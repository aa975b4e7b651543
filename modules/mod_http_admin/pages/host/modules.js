/** The modules: their states, what they own, and the actions on them. */
import { html } from "htm/preact";
import {
  Ago,
  Badge,
  Button,
  Confirm,
  Empty,
  Link,
  Load,
  Page,
  post,
  Search,
  Section,
  Table,
  TextField,
  toast,
  useAction,
  useApi,
  useQuery,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { ChangeFailure, failureOf } from "./change.js";

/** @type {Record<string, "good" | "warn" | "bad" | "plain">} */
const tones = { loaded: "good", failed: "bad", quarantined: "bad", loading: "plain", unloading: "plain" };

/** @param {{ rest: string }} props */
export default function Modules({ rest }) {
  const modules = useApi("/modules", { every: 5000 });
  if (rest !== "") return html`<${One} name=${rest} modules=${modules} />`;
  return html`<${List} modules=${modules} />`;
}

/** @param {{ modules: any }} props */
function List({ modules }) {
  const [search, setSearch] = useQuery("search");
  const [isLoading, setLoading] = useState(false);
  const actions = html`<${Search} value=${search} onInput=${setSearch} label="Search modules" /><${Button} onClick=${() => setLoading(true)}>Load a module<//>`;
  return html`<${Page} title="Modules" actions=${actions}>
    ${isLoading && html`<${LoadModule} onClose=${() => setLoading(false)} />`}
    <${Load} of=${modules}>${(/** @type {any[]} */ all) => {
      const rows = all.filter(({ name, note = "" }) => `${name} ${note}`.toLowerCase().includes(search.toLowerCase()));
      return html`<${Table} label="Modules" rows=${rows} rowKey=${keyOf} sortBy="name" columns=${columns}
        empty=${html`<${Empty} title=${search === "" ? "No module is loaded." : "No module name matches."} />`} />`;
    }}<//>
  <//>`;
}

const keyOf = (/** @type {any} */ { name, host }) => `${name} ${host}`;
const worst = ["failed", "quarantined", "loading", "unloading", "loaded"];

const columns = [
  {
    name: "name",
    title: "Name",
    class: "fit",
    sort: (/** @type {any} */ row) => row.name,
    cell: (/** @type {any} */ row) => html`<${Link} to=${`modules/${row.name}`}>${row.name}<//>`,
  },
  {
    name: "status",
    title: "State",
    sort: (/** @type {any} */ row) => worst.indexOf(row.status),
    cell: (/** @type {any} */ row) => html`<${Badge} tone=${tones[row.status]}>${row.status}<//>`,
  },
  {
    name: "host",
    title: "Host",
    sort: (/** @type {any} */ row) => row.host,
    cell: (/** @type {any} */ row) => (row.host === "*" ? "all" : row.host),
  },
  { name: "note", title: "Note", cell: (/** @type {any} */ row) => row.note ?? "" },
  {
    name: "do",
    title: "",
    class: "fit",
    cell: (/** @type {any} */ row) => html`<${Reload} name=${row.name} host=${row.host} kind="quiet" />`,
  },
];

/** @param {{ name: string, host: string, kind?: string }} props */
function Reload({ name, host, kind }) {
  const [failure, setFailure] = useState(/** @type {any} */ (undefined));
  const { start, isBusy } = useAction(async () => {
    try {
      await post(`/modules/${encodeURIComponent(name)}/reload`, host === "*" ? {} : { host });
      toast(`${name} was reloaded.`);
    } catch (error) {
      setFailure(failureOf(error));
    }
  });
  return html`<${Button} kind=${kind} isBusy=${isBusy} onClick=${start} aria-label=${`Reload ${name}`}>Reload<//>
    ${failure && html`<${ChangeFailure} title=${`${name} was not reloaded`} failure=${failure} onClose=${() => setFailure(undefined)} />`}`;
}

/** @param {{ name: string, modules: any }} props */
function One({ name, modules }) {
  const [isLeaving, setLeaving] = useState(false);
  const unload = async () => {
    const { warnings = [] } = await post(`/modules/${encodeURIComponent(name)}/unload`);
    toast([`${name} was unloaded.`, ...warnings].join(" "));
  };
  return html`<${Page} title=${name} lead=${html`<${Link} to="modules">All modules<//>`}
    actions=${html`<${Reload} name=${name} host="*" /><${Button} kind="danger" onClick=${() => setLeaving(true)}>Unload<//>`}>
    ${
      isLeaving &&
      html`<${Confirm} title=${`Unload ${name}?`} confirm="Unload" danger onConfirm=${unload} onClose=${() => setLeaving(false)}>
        <p>Its open requests are finished first. Modules that depend on it are unloaded, too.</p>
      <//>`
    }
    <${Load} of=${modules}>${(/** @type {any[]} */ all) => {
      const own = all.filter((each) => each.name === name);
      if (own.length === 0)
        return html`<${Empty} title="This module is not loaded."><p>Load it again from the list of modules.</p><//>`;
      return own.map((each) => html`<${Instance} key=${each.host} of=${each} all=${all} />`);
    }}<//>
  <//>`;
}

/** @param {{ of: any, all: any[] }} props */
function Instance({ of, all }) {
  const {
    name,
    host,
    status,
    file,
    note,
    depends,
    holds,
    quarantine,
    run,
    is_audited,
    sandbox,
    has_spare,
    permissions = [],
  } = of;
  const dependants = all.filter((each) => each.depends.includes(name)).map((each) => each.name);
  const links = (/** @type {string[]} */ names) =>
    names.length === 0
      ? "none"
      : [...new Set(names)].map((each) => html`<${Link} to=${`modules/${each}`}>${each}<//> `);
  const owned = Object.entries(holds);
  return html`<${Section} title=${host === "*" ? "State" : `On ${host}`}>
    <dl class="facts">
      <dt>State</dt><dd><${Badge} tone=${tones[status]}>${status}<//></dd>
      ${note && html`<dt>Note</dt><dd class="note">${note}</dd>`}
      ${quarantine && html`<dt>In quarantine</dt><dd>since <${Ago} time=${quarantine.since * 1000} />${quarantine.next_try && html`, tried again <${Ago} time=${quarantine.next_try * 1000} />`}; <em>Reload</em> tries it now</dd>`}
      <dt>Runs</dt><dd>${runs[run]}${is_audited && html` <${Badge} tone="warn">audited: nothing is refused<//>`}</dd>
      ${has_spare !== undefined && html`<dt>Spare</dt><dd>${has_spare ? "a process is ready to take over" : "no process is ready yet"}</dd>`}
      <dt>File</dt><dd>${file ? html`<code>${file}</code>` : "passed by the program"}</dd>
      <dt>Depends on</dt><dd>${links(depends)}</dd>
      <dt>Needed by</dt><dd>${links(dependants)}</dd>
      <dt>Owns</dt><dd>${owned.length === 0 ? "nothing" : owned.map(([kind, many]) => `${many} ${kind}`).join(", ")}</dd>
      <dt>Log</dt><dd><${Link} to="log" query=${{ module: name }}>Latest lines<//></dd>
    </dl>
  <//>
  ${sandbox && html`<${Sandbox} of=${sandbox} />`}
  ${permissions.length > 0 && html`<${Permissions} of=${permissions} run=${run} />`}`;
}

/** @type {Record<string, string>} */
const runs = {
  trusted: "trusted, in the server",
  isolated: "isolated, in a worker thread",
  sandboxed: "sandboxed, in a process of its own",
};

/** @param {{ of: any[] }} props */
function Sandbox({ of }) {
  return html`<${Section} title="Sandbox">
    <${Table} label="Layers" rows=${of} rowKey=${(/** @type {any} */ each) => each.name} columns=${layerColumns} />
  <//>`;
}

const layerColumns = [
  { name: "name", title: "Layer", class: "fit", cell: (/** @type {any} */ row) => html`<code>${row.name}</code>` },
  {
    name: "is_active",
    title: "State",
    class: "fit",
    cell: (/** @type {any} */ row) =>
      row.is_active ? html`<${Badge} tone="good">on<//>` : html`<${Badge} tone="warn">off<//>`,
  },
  {
    name: "text",
    title: "",
    cell: (/** @type {any} */ row) => html`${row.text}${row.remedy && html` <span class="soft">${row.remedy}</span>`}`,
  },
];

/** @param {{ of: any[], run: string }} props */
function Permissions({ of, run }) {
  const missing = of.filter((each) => each.is_declared && each.is_enforced && !each.is_granted);
  return html`<${Section} title="Permissions">
    ${run === "trusted" && html`<p class="soft">A trusted module may do everything. This list shows what it would need if it ran sandboxed.</p>`}
    ${run === "isolated" && html`<p class="soft">In a worker thread only environment variables and calls of other modules can be refused, if the module has a grant.</p>`}
    <${Table} label="Permissions" rows=${of} rowKey=${(/** @type {any} */ each) => `${each.kind} ${each.what}`} columns=${permissionColumns} />
    ${
      missing.length > 0 &&
      html`<p>To grant what it declares, add to the configuration:</p>
      <ul class="plain">${missing.map((each) => html`<li><code>${each.grant}</code></li>`)}</ul>`
    }
  <//>`;
}

const counted = (/** @type {number | undefined} */ count) => (count === undefined ? "not counted" : count);

const permissionColumns = [
  { name: "text", title: "It", cell: (/** @type {any} */ row) => row.text },
  {
    name: "declared",
    title: "Declared",
    class: "fit",
    cell: (/** @type {any} */ row) => (row.is_declared ? "yes" : "no"),
  },
  {
    name: "granted",
    title: "Granted",
    class: "fit",
    cell: (/** @type {any} */ row) =>
      row.is_enforced
        ? html`<${Badge} tone=${row.is_granted ? "good" : "warn"}>${row.is_granted ? "yes" : "no"}<//>`
        : `${row.is_granted ? "yes" : "no"}, not enforced`,
  },
  { name: "used", title: "Used", class: "fit", cell: (/** @type {any} */ row) => counted(row.used) },
  {
    name: "denied",
    title: "Denied",
    class: "fit",
    cell: (/** @type {any} */ row) =>
      row.denied > 0 ? html`<${Badge} tone="bad">${row.denied}<//>` : counted(row.denied),
  },
  {
    name: "last",
    title: "Last",
    class: "fit",
    cell: (/** @type {any} */ row) =>
      row.last === undefined ? "never" : html`<${Ago} time=${Date.parse(row.last)} />`,
  },
];

/** @param {{ onClose: () => void }} props */
function LoadModule({ onClose }) {
  const [name, setName] = useState("");
  const load = async () => {
    const { what } = await post("/modules", { name: name.trim() });
    toast(`Done: ${what}.`);
  };
  return html`<${Confirm} title="Load a module" confirm="Load" onConfirm=${load} onClose=${onClose}>
    <${TextField} label="Name or path" value=${name} onInput=${setName} hint="Such as http_notes, or /srv/modules/mod_notes.ts on the server" autofocus />
  <//>`;
}
