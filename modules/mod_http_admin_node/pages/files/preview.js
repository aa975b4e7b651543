/** Shows one file with a preview. Its content comes from a stranger, so nothing in it runs. */
import { html } from "htm/preact";
import {
  addressOf,
  ask,
  Button,
  Copy,
  hrefOf,
  Link,
  linkTo,
  Notice,
  navigate,
  Page,
  printable,
  Section,
  size,
} from "modhost/admin";
import { useEffect, useState } from "preact/hooks";
import { Dialogs } from "./dialogs.js";
import { addressParts, nameOf, parentOf } from "./paths.js";

/** Number of bytes of a text that are shown. */
const MAX_TEXT = 64 * 1024;

/** @param {{ path: string, stat: any, onChange: () => Promise<void> }} props */
export function Preview({ path, stat, onChange }) {
  const [dialog, setDialog] = useState(/** @type {any} */ (undefined));
  const above = ["files", ...addressParts(parentOf(path))].join("/");
  const leave = async () => navigate(hrefOf(above));
  const actions = html`<a class="button" href=${linkTo("/node/files/content", { path, as: "download" })} download>Download</a>
    <${Button} onClick=${() => setDialog({ kind: "more", path, entry: { name: nameOf(path), cid: stat.cid, size: stat.size, is_here: true } })}>More<//>`;
  return html`<${Page} title=${printable(nameOf(path))} lead=${html`<${Link} to=${above}>${printable(parentOf(path))}<//>`} actions=${actions}>
    <${Dialogs} of=${dialog} folder=${parentOf(path)} onDone=${async () => {
      await onChange();
      await leave();
    }} onClose=${() => setDialog(undefined)} />
    <dl class="facts">
      <dt>Size</dt><dd>${size(stat.size)}</dd>
      <dt>Type</dt><dd>${stat.media_type ?? "unknown"}</dd>
      <dt>CID</dt><dd><${Copy} text=${stat.cid} /></dd>
    </dl>
    <${Section} title="Preview"><${Content} path=${path} stat=${stat} /><//>
  <//>`;
}

/** @param {{ path: string, stat: any }} props */
function Content({ path, stat }) {
  const type = stat.media_type ?? "";
  const source = linkTo("/node/files/content", { path });
  const name = nameOf(path);
  if (/^image\//.test(type)) return html`<img class="preview" src=${source} alt=${`Picture: ${printable(name)}`} />`;
  if (/^video\//.test(type))
    return html`<video class="preview" src=${source} controls preload="metadata" aria-label=${printable(name)}></video>`;
  if (/^audio\//.test(type))
    return html`<audio src=${source} controls preload="metadata" aria-label=${printable(name)}></audio>`;
  if (/^text\/|json|xml|javascript|yaml/.test(type)) return html`<${Text} path=${path} bytes=${stat.size} />`;
  return html`<p class="soft">A file of this type has no preview. Download it to open it.</p>`;
}

/** @param {{ path: string, bytes: number }} props */
function Text({ path, bytes }) {
  const [text, setText] = useState(/** @type {string | undefined} */ (undefined));
  useEffect(() => {
    const own = new AbortController();
    ask(addressOf("/node/files/content", { path, as: "text" }), {
      headers: { Range: `bytes=0-${MAX_TEXT - 1}` },
      signal: own.signal,
    })
      .then((response) => response.text())
      .then(setText, () => undefined);
    return () => own.abort();
  }, [path]);
  if (text === undefined) return html`<p class="loading" role="status">Loading…</p>`;
  return html`<pre dir="auto">${text}</pre>${bytes > MAX_TEXT && html`<${Notice}>Only the first ${size(MAX_TEXT)} are shown.<//>`}`;
}
