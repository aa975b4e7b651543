/** A change that came to nothing: why, and where in a module's source. */
import { html } from "htm/preact";
import { ApiError, Dialog } from "modhost/admin";

/**
 * What the record of a change says of its failure.
 * @param {unknown} error
 * @returns {{ message: string, place?: { file: string, line: number, text?: string } }}
 */
export function failureOf(error) {
  const record = error instanceof ApiError ? /** @type {any} */ (error.answer) : undefined;
  return record?.error?.message === undefined || record.result === undefined
    ? { message: /** @type {Error} */ (error).message }
    : record.error;
}

/** @param {{ title: string, failure: ReturnType<typeof failureOf>, onClose: () => void }} props */
export function ChangeFailure({ title, failure, onClose }) {
  const { message, place } = failure;
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>The one that was running goes on.</p>
    <p class="note">${message}</p>
    ${place && html`<p><code>${place.file}:${place.line}</code></p>${place.text && html`<pre>${place.text}</pre>`}`}
  <//>`;
}
