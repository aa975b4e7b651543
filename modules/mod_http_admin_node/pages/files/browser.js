/** Browses the mutable namespace: folders and files, with upload, move and sharing. */
import { html } from "htm/preact";
import {
  Button,
  count,
  Empty,
  hrefOf,
  Link,
  Load,
  linkTo,
  Notice,
  navigate,
  Page,
  printable,
  Search,
  size,
  Table,
  useQuery,
} from "modhost/admin";
import { useRef, useState } from "preact/hooks";
import { shortened } from "../parts.js";
import { Dialogs } from "./dialogs.js";
import { useEntries } from "./entries.js";
import { addressParts, nameOf, parentOf, partsOf } from "./paths.js";
import { Preview } from "./preview.js";
import { entriesOf, filesOf, Uploads, useUploads } from "./uploads.js";

/** @param {{ rest: string }} props path below `/files`, each name encoded */
export default function Files({ rest }) {
  const path = `/${rest.split("/").filter(Boolean).map(decodeURIComponent).join("/")}`;
  const list = useEntries(path);
  if (list.data?.type === "file") return html`<${Preview} path=${path} stat=${list.data} onChange=${list.reload} />`;
  return html`<${Folder} path=${path} list=${list} />`;
}

/** @param {{ path: string, list: any }} props */
function Folder({ path, list }) {
  const [search, setSearch] = useQuery("search");
  const [dialog, setDialog] = useState(/** @type {any} */ (undefined));
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const [isOver, setOver] = useState(false);
  const uploads = useUploads(list.reload);
  const files = useRef(/** @type {HTMLInputElement | null} */ (null));
  const folder = useRef(/** @type {HTMLInputElement | null} */ (null));
  const bring = (/** @type {Promise<import("./uploads.js").Chosen[]>} */ found) =>
    void found.then((all) => uploads.add(path, all));
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer !== null) bring(entriesOf(event.dataTransfer));
  };
  const toggle = (/** @type {string} */ name) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const close = () => {
    setDialog(undefined);
    setChosen(new Set());
  };
  const chosenPaths = [...chosen].map((name) => `${path === "/" ? "" : path}/${name}`);
  const actions = html`<${Search} value=${search} onInput=${setSearch} label="Search this folder" />
    <${Button} kind="primary" onClick=${() => files.current?.click()}>Upload files<//>
    <${Button} onClick=${() => folder.current?.click()}>Upload a folder<//>
    <${Button} onClick=${() => setDialog({ kind: "mkdir" })}>New folder<//>
    <${Button} onClick=${() => setDialog({ kind: "import" })}>Import by CID<//>`;
  return html`<${Page} title=${path === "/" ? "Files" : printable(nameOf(path))} lead=${path !== "/" && html`<${Trail} path=${path} />`} actions=${actions}>
    <input ref=${files} type="file" multiple hidden aria-label="Files to upload" onChange=${(/** @type {any} */ event) => bring(filesOf(event.currentTarget))} />
    <input ref=${folder} type="file" webkitdirectory hidden aria-label="Folder to upload" onChange=${(/** @type {any} */ event) => bring(filesOf(event.currentTarget))} />
    <${Dialogs} of=${dialog} folder=${path} onDone=${list.reload} onClose=${close} />
    <${Uploads} of=${uploads} />
    ${chosen.size > 0 && html`<${Chosen} paths=${chosenPaths} onDialog=${setDialog} onClear=${() => setChosen(new Set())} />`}
    <div class=${`drop ${isOver ? "over" : ""}`} onDragOver=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      setOver(true);
    }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <${Load} of=${list}>${(/** @type {any} */ data) => {
        const rows = data.entries.filter((/** @type {any} */ { name }) =>
          name.toLowerCase().includes(search.toLowerCase()),
        );
        const empty = html`<${Empty} title=${search === "" ? "This folder is empty." : "No name matches."}><p>Drop files or folders here, or choose them above.</p><//>`;
        return html`<p class="soft" role="status">${count(data.total)} ${data.total === 1 ? "entry" : "entries"}${data.entries.length < data.total ? `, ${count(data.entries.length)} loaded` : ""}${data.cid ? html`, <${Link} to="explore" query=${{ path: data.cid }}><code>${shortened(data.cid)}</code><//>` : ""}</p>
          <${Table} label="Files" rows=${rows} rowKey=${(/** @type {any} */ row) => row.name} columns=${columnsWith(path, chosen, toggle, setDialog)} empty=${empty} />`;
      }}<//>
    </div>
  <//>`;
}

/** @param {{ path: string }} props */
function Trail({ path }) {
  const parts = partsOf(path);
  return html`<nav class="trail" aria-label="Folders above"><${Link} to="files">Files<//>${parts.map((name, at) => html` / ${at === parts.length - 1 ? html`<span aria-current="page"><bdi>${printable(name)}</bdi></span>` : html`<${Link} to=${addressOfPath(`/${parts.slice(0, at + 1).join("/")}`)}><bdi>${printable(name)}</bdi><//>`}`)}</nav>`;
}

/**
 * Returns the page address of a path.
 * @param {string} path
 */
const addressOfPath = (path) => ["files", ...addressParts(path)].join("/");

/** @param {{ paths: string[], onDialog: (dialog: any) => void, onClear: () => void }} props */
function Chosen({ paths, onDialog, onClear }) {
  return html`<${Notice}><span>${count(paths.length)} chosen</span><span class="actions">
    <${Button} onClick=${() => onDialog({ kind: "move", paths })}>Move<//>
    <${Button} onClick=${() => onDialog({ kind: "copy", paths })}>Copy<//>
    <${Button} kind="danger" onClick=${() => onDialog({ kind: "remove", paths })}>Remove<//>
    <${Button} kind="quiet" onClick=${onClear}>Clear selection<//>
  </span><//>`;
}

/**
 * @param {string} folder @param {ReadonlySet<string>} chosen @param {(name: string) => void} toggle
 * @param {(dialog: any) => void} open
 */
function columnsWith(folder, chosen, toggle, open) {
  const pathOf = (/** @type {string} */ name) => `${folder === "/" ? "" : folder}/${name}`;
  return [
    {
      name: "choose",
      title: "",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`<input type="checkbox" aria-label=${`Choose ${row.name}`} checked=${chosen.has(row.name)} onChange=${() => toggle(row.name)} />`,
    },
    {
      name: "name",
      title: "Name",
      class: "one-line",
      sort: (/** @type {any} */ row) => `${row.type === "directory" ? 0 : 1} ${row.name}`,
      cell: (/** @type {any} */ row) =>
        html`<${Link} to=${addressOfPath(pathOf(row.name))} class=${row.type === "directory" ? "folder" : ""}><bdi>${printable(row.name)}${row.type === "directory" ? "/" : ""}</bdi><//>`,
    },
    {
      name: "size",
      title: "Size",
      align: /** @type {const} */ ("end"),
      class: "fit",
      sort: (/** @type {any} */ row) => row.size,
      cell: (/** @type {any} */ row) => size(row.size),
    },
    {
      name: "cid",
      title: "CID",
      class: "fit",
      cell: (/** @type {any} */ row) =>
        html`<${Link} to="explore" query=${{ path: row.cid }} title=${row.cid}><code>${shortened(row.cid)}</code><//>`,
    },
    {
      name: "do",
      title: "",
      class: "fit",
      cell: (
        /** @type {any} */ row,
      ) => html`<a class="quiet" href=${linkTo(row.type === "directory" ? "/node/files/tar" : "/node/files/content", row.type === "directory" ? { path: pathOf(row.name) } : { path: pathOf(row.name), as: "download" })} download aria-label=${`Download ${row.name}`}>Download</a>
        <${Button} kind="quiet" onClick=${() => open({ kind: "more", path: pathOf(row.name), entry: row })} aria-label=${`More on ${row.name}`}>More<//>`,
    },
  ];
}

/** @param {string} path */
export function openFolder(path) {
  navigate(hrefOf(addressOfPath(parentOf(path))));
}
