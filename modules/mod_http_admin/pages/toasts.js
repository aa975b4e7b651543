/** Short messages about recent events, shown long enough to read them. */
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";

/** @typedef {{ id: number, text: string, tone: "good" | "warn" | "bad" | "plain" }} Toast */

const SHOWN = 6000;
/** @type {Toast[]} */
let toasts = [];
let last = 0;
/** @type {Set<(toasts: Toast[]) => void>} */
const watchers = new Set();

/** @param {Toast[]} next */
function become(next) {
  toasts = next;
  for (const watch of watchers) watch(next);
}

/** @param {string} text @param {Toast["tone"]} [tone] */
export function toast(text, tone = "good") {
  const id = (last += 1);
  become([...toasts.slice(-3), { id, text, tone }]);
  setTimeout(() => become(toasts.filter((each) => each.id !== id)), SHOWN);
}

export function Toasts() {
  const [shown, set] = useState(toasts);
  useEffect(() => {
    watchers.add(set);
    return () => void watchers.delete(set);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(({ id, text, tone }) => html`<p key=${id} class=${`toast ${tone}`}>${text}</p>`)}
  </div>`;
}
