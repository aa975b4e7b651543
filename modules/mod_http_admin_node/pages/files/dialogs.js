/** Dialogs for the actions on files and folders. */
import { html } from "htm/preact";
import {
  Button,
  Choice,
  Confirm,
  Copy,
  Dialog,
  Link,
  linkTo,
  Problem,
  post,
  printable,
  size,
  TextField,
  toast,
  useApi,
} from "modhost/admin";
import { useState } from "preact/hooks";
import { shortened } from "../parts.js";
import { nameOf, within } from "./paths.js";

/**
 * @typedef {{ of: any, folder: string, onDone: () => Promise<void>, onClose: () => void, onDialog?:
 * (dialog: any) => void }} DialogProps
 */

const dialogs = {
  mkdir: NewFolder,
  import: Import,
  move: MoveOrCopy,
  copy: MoveOrCopy,
  rename: Rename,
  remove: Remove,
  more: More,
  publish: Publish,
};

/** @param {{ of: any, folder: string, onDone: () => Promise<void>, onClose: () => void }} props */
export function Dialogs({ of, ...rest }) {
  const [inner, setInner] = useState(/** @type {any} */ (undefined));
  const shown = inner ?? of;
  if (of === undefined || shown === undefined) return null;
  const Shown = dialogs[/** @type {keyof typeof dialogs} */ (shown.kind)];
  const close = () => {
    setInner(undefined);
    rest.onClose();
  };
  return html`<${Shown} key=${shown.kind} of=${shown} ...${rest} onClose=${close} onDialog=${setInner} />`;
}

/** @param {DialogProps} props */
function NewFolder({ folder, onDone, onClose }) {
  const [name, setName] = useState("");
  const make = async () => {
    await post("/node/files/mkdir", { path: within(folder, name.trim()), parents: true });
    await onDone();
  };
  return html`<${Confirm} title="New folder" confirm="Create" onConfirm=${make} onClose=${onClose}><${TextField} label="Name" value=${name} onInput=${setName} autofocus /><//>`;
}

/** @param {DialogProps} props */
function Import({ folder, onDone, onClose }) {
  const [cid, setCid] = useState("");
  const [name, setName] = useState("");
  const bring = async () => {
    const to = within(folder, name.trim() || nameOf(cid.trim()));
    await post("/node/files/import", { cid: cid.trim(), to });
    toast(`Added at ${to}. Its content is fetched when it is read; pin it to fetch everything.`);
    await onDone();
  };
  return html`<${Confirm} title="Import by CID" confirm="Import" onConfirm=${bring} onClose=${onClose}>
    <${TextField} label="CID or path" value=${cid} onInput=${setCid} hint="Such as bafy… or /ipfs/bafy…/photos" autofocus />
    <${TextField} label="Name here" value=${name} onInput=${setName} hint="Empty: the last part of the path" />
  <//>`;
}

/** @param {DialogProps} props */
function MoveOrCopy({ of: { kind, paths }, folder, onDone, onClose }) {
  const [to, setTo] = useState(folder);
  const isMove = kind === "move";
  const go = async () => {
    for (const path of paths)
      await post(`/node/files/${kind}`, { from: path, to: within(to.trim().replace(/\/$/, "") || "/", nameOf(path)) });
    toast(`${paths.length} ${isMove ? "moved" : "copied"} to ${to}.`);
    await onDone();
  };
  return html`<${Confirm} title=${`${isMove ? "Move" : "Copy"} ${paths.length === 1 ? printable(nameOf(paths[0])) : `${paths.length} entries`}`} confirm=${isMove ? "Move" : "Copy"} onConfirm=${go} onClose=${onClose}>
    <${TextField} label="To the folder" value=${to} onInput=${setTo} hint="A whole path, such as /photos/summer" autofocus />
  <//>`;
}

/** @param {DialogProps} props */
function Rename({ of: { path }, folder, onDone, onClose }) {
  const [name, setName] = useState(nameOf(path));
  const rename = async () => {
    await post("/node/files/move", { from: path, to: within(folder, name.trim()) });
    await onDone();
  };
  return html`<${Confirm} title="Rename" confirm="Rename" onConfirm=${rename} onClose=${onClose}><${TextField} label="Name" value=${name} onInput=${setName} autofocus /><//>`;
}

/** @param {DialogProps} props */
function Remove({ of: { paths }, onDone, onClose }) {
  const remove = async () => {
    for (const path of paths) await post("/node/files/remove", { path, recursive: true });
    toast(`${paths.length === 1 ? printable(nameOf(paths[0])) : `${paths.length} entries`} removed.`);
    await onDone();
  };
  return html`<${Confirm} title=${paths.length === 1 ? `Remove ${printable(nameOf(paths[0]))}?` : `Remove ${paths.length} entries?`} confirm="Remove" danger onConfirm=${remove} onClose=${onClose}>
    <p>Folders are removed with their contents. The blocks stay until the next garbage collection, and longer if they are pinned.</p>
  <//>`;
}

/** @param {DialogProps} props */
function Publish({ of: { entry }, onClose }) {
  const keys = useApi("/node/keys", { topic: "" });
  const [key, setKey] = useState("self");
  const publish = async () => {
    const { name } = await post("/node/names/publish", { path: `/ipfs/${entry.cid}`, key, allow_offline: true });
    toast(`/ipns/${name} now leads to it.`);
  };
  return html`<${Confirm} title=${`Publish ${printable(entry.name)}`} confirm="Publish" onConfirm=${publish} onClose=${onClose}>
    <p>The name of a key leads to the path that was published last. The name stays the same when the content changes.</p>
    <${Choice} label="Key" value=${key} onChange=${setKey} choices=${(keys.data ?? []).map((/** @type {any} */ { name, value }) => [name, value ? `${name}, now ${shortened(value)}` : name])} />
    <${Problem} error=${keys.error} />
  <//>`;
}

/**
 * Returns a link for people without a node. It uses a public gateway, which finds this node if
 * others can reach it.
 * @param {any} entry
 */
function linkFor({ cid, name }) {
  return `https://dweb.link/ipfs/${cid}?${new URLSearchParams({ filename: name })}`;
}

/** @param {DialogProps} props */
function More({ of: { path, entry }, onClose, onDialog }) {
  const open = (/** @type {string} */ kind) => () => onDialog?.({ kind, path, paths: [path] });
  const pin = async () => {
    await post("/node/pins", { path: `/ipfs/${entry.cid}`, name: entry.name });
    toast("The pinning has begun.", "plain");
    onClose();
  };
  return html`<${Dialog} title=${printable(entry.name)} onClose=${onClose}>
    <dl class="facts">
      <dt>CID</dt><dd><${Copy} text=${entry.cid} /></dd>
      <dt>Path</dt><dd><${Copy} text=${`/ipfs/${entry.cid}`} /></dd>
      <dt>Link</dt><dd><${Copy} text=${linkFor(entry)} /></dd>
      <dt>Size</dt><dd>${size(entry.size)}</dd>
      <dt>Here</dt><dd>${entry.is_here ? "the first block is on this machine" : "not yet: it is fetched when it is read"}</dd>
    </dl>
    <div class="actions">
      <${Button} onClick=${open("rename")}>Rename<//><${Button} onClick=${open("move")}>Move<//><${Button} onClick=${open("copy")}>Copy<//>
      <${Button} onClick=${pin}>Pin<//><${Button} onClick=${() => onDialog?.({ kind: "publish", entry })}>Publish<//>
      <a class="button" href=${linkTo("/node/files/car", { path })} download>Download as CAR</a>
      <a class="button" href=${linkTo("/node/files/tar", { path })} download>Download as tar</a>
      <${Link} to="explore" query=${{ path: entry.cid }} class="button">Explore<//>
      <${Button} kind="danger" onClick=${open("remove")}>Remove<//>
    </div>
  <//>`;
}
