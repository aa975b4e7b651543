/** Components that the pages are built from. */
import { html } from "htm/preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ago, fullTime, percent } from "./format.js";

/** @typedef {any} Children */

/**
 * A page with its title, actions and content.
 * @param {{ title: string, lead?: Children, actions?: Children, children?: Children }} props
 */
export function Page({ title, lead, actions, children }) {
  useEffect(() => {
    document.title = `${title} – modhost`;
  }, [title]);
  return html`<main id="main" tabindex="-1">
    <header class="page-head">
      <div><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </main>`;
}

/** @param {{ title?: string, actions?: Children, children?: Children, class?: string }} props */
export function Section({ title, actions, children, class: name = "" }) {
  const id = useId();
  return html`<section class=${`section ${name}`} aria-labelledby=${title ? id : undefined}>
    ${title && html`<header><h2 id=${id}>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}
  </section>`;
}

/**
 * A button. While `isBusy`, it ignores clicks and looks busy.
 * @param {{ children?: Children, onClick?: (event: any) => void, kind?: "plain" | "primary" |
 * "danger" | "quiet", isBusy?: boolean, disabled?: boolean, type?: string, [attribute: string]: any
 * }} props
 */
export function Button({
  children,
  kind = "plain",
  isBusy = false,
  disabled = false,
  type = "button",
  onClick,
  ...rest
}) {
  const click = (/** @type {any} */ event) => {
    if (isBusy) event.preventDefault();
    else onClick?.(event);
  };
  return html`<button type=${type} class=${kind} aria-busy=${isBusy} disabled=${disabled} onClick=${click} ...${rest}>${children}</button>`;
}

/**
 * A word on a coloured background.
 * @param {{ tone?: "good" | "warn" | "bad" | "plain", children?: Children }}
 * props
 */
export const Badge = ({ tone = "plain", children }) => html`<span class=${`badge ${tone}`}>${children}</span>`;

/**
 * Shows an error, with a button to retry.
 * @param {{ error: Error | undefined, retry?: () => void }} props
 */
export function Problem({ error, retry }) {
  if (error === undefined) return null;
  return html`<div class="notice bad" role="alert">
    <p>${error.message}</p>
    ${retry && html`<${Button} onClick=${retry}>Try again<//>`}
  </div>`;
}

/** @param {{ tone?: "plain" | "good" | "warn" | "bad", children?: Children }} props */
export const Notice = ({ tone = "plain", children }) =>
  html`<div class=${`notice ${tone}`} role="status">${children}</div>`;

/**
 * A placeholder for missing content, which explains why it is missing and what to do.
 * @param {{ title: string, children?: Children
 * }} props
 */
export const Empty = ({ title, children }) =>
  html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;

/**
 * Shows the data, a loading note, or the error.
 * @param {{ of: import("./data.js").Loaded<any>,
 * children: (data: any) => Children }} props
 */
export function Load({ of, children }) {
  if (of.data !== undefined) return html`<${Problem} error=${of.error} retry=${of.reload} />${children(of.data)}`;
  if (of.error !== undefined) return html`<${Problem} error=${of.error} retry=${of.reload} />`;
  return html`<p class="loading" role="status">Loading…</p>`;
}

/**
 * Shows a time such as "3 minutes ago", keeps it up to date, and shows the full time on hover.
 * @param {{ time: string | number |
 * undefined }} props
 */
export function Ago({ time }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((value) => value + 1), 10_000);
    return () => clearInterval(timer);
  }, []);
  if (time === undefined) return null;
  const date = new Date(time);
  return html`<time datetime=${date.toISOString()} title=${fullTime(date)}>${ago(date)}</time>`;
}

/**
 * Shows a text with a button that copies it.
 * @param {{ text: string, label?: string, children?: Children
 * }} props
 */
export function Copy({ text, label = "Copy", children = text }) {
  const [isDone, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<span class="copy"><code>${children}</code>
    <${Button} kind="quiet" onClick=${copy} aria-label=${`${label}: ${text}`}>${isDone ? "Copied" : "Copy"}<//></span>`;
}

/**
 * Shows a share of a total as a bar.
 * @param {{ value: number, max: number, label: string, tone?: "plain" | "warn"
 * | "bad" }} props
 */
export function Meter({ value, max, label, tone = "plain" }) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  const bar = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (bar.current !== null) bar.current.style.inlineSize = `${share * 100}%`;
  }, [share]);
  return html`<div class=${`meter ${tone}`} role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)} aria-valuetext=${percent(share)}>
    <div ref=${bar}></div>
  </div>`;
}

/**
 * A field with its label. The child is a function that gets the id and returns the input:
 * `(id) => html...`.
 * @param {{ label: string, hint?: Children, error?: string | undefined, children: (id: string,
 * describedBy: string | undefined) => Children }} props
 */
export function Field({ label, hint, error, children }) {
  const id = useId();
  const note = error ?? hint;
  return html`<div class=${`field ${error ? "invalid" : ""}`}>
    <label for=${id}>${label}</label>
    ${children(id, note ? `${id}-note` : undefined)}
    ${note && html`<p class="hint" id=${`${id}-note`}>${note}</p>`}
  </div>`;
}

/**
 * @param {{ label: string, value: string, onInput: (value: string) => void, hint?: Children,
 * error?: string | undefined, type?: string, [attribute: string]: any }} props
 */
export function TextField({ label, value, onInput, hint, error, type = "text", ...rest }) {
  return html`<${Field} label=${label} hint=${hint} error=${error}>${(
    /** @type {string} */ id,
    /** @type {string | undefined} */ note,
  ) =>
    html`<input id=${id} type=${type} value=${value} aria-describedby=${note} aria-invalid=${error ? "true" : undefined}
      autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ event) => onInput(event.currentTarget.value)} ...${rest} />`}<//>`;
}

/**
 * @param {{ label: string, value: string, onChange: (value: string) => void, choices: readonly
 * (readonly [string, string])[], hint?: Children }} props value and text of each choice
 */
export function Choice({ label, value, onChange, choices, hint }) {
  return html`<${Field} label=${label} hint=${hint}>${(
    /** @type {string} */ id,
    /** @type {string | undefined} */ note,
  ) =>
    html`<select id=${id} value=${value} aria-describedby=${note} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.value)}>
      ${choices.map(([each, text]) => html`<option value=${each} selected=${each === value}>${text}</option>`)}
    </select>`}<//>`;
}

/**
 * A search field. Escape clears it.
 * @param {{ value: string, onInput: (value:
 * string) => void, label?: string, placeholder?: string }} props
 */
export function Search({ value, onInput, label = "Search", placeholder = label }) {
  return html`<input class="search" type="search" aria-label=${label} placeholder=${placeholder} value=${value} spellcheck=${false}
    onInput=${(/** @type {any} */ event) => onInput(event.currentTarget.value)}
    onKeyDown=${(/** @type {any} */ event) => event.key === "Escape" && onInput("")} />`;
}

/**
 * A dialog over the page. Escape closes it.
 * @param {{ title: string, onClose: () => void, children?: Children, actions?: Children, wide?:
 * boolean }} props
 */
export function Dialog({ title, onClose, children, actions, wide = false }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  const closed = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${closed}>
    <h2 id=${id}>${title}</h2>
    <div class="dialog-body">${children}</div>
    <footer>${actions ?? html`<${Button} onClick=${onClose}>Close<//>`}</footer>
  </dialog>`;
}

/**
 * Asks for confirmation before an action that cannot be undone. If the action fails, shows the
 * error and stays open.
 * @param {{ title: string, confirm: string, danger?: boolean, onConfirm: () => Promise<unknown>,
 * onClose: () => void, children?: Children }} props
 */
export function Confirm({ title, confirm, danger = false, onConfirm, onClose, children }) {
  const [state, set] = useState(/** @type {{ isBusy: boolean, error?: Error }} */ ({ isBusy: false }));
  const go = async () => {
    set({ isBusy: true });
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      set({ isBusy: false, error: /** @type {Error} */ (error) });
    }
  };
  const actions = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind=${danger ? "danger" : "primary"} isBusy=${state.isBusy} onClick=${go}>${confirm}<//>`;
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${actions}>${children}<${Problem} error=${state.error} /><//>`;
}
