/** Explains why a change failed, with the line of the module's source. */
import { html } from "htm/preact";
import { ApiError, Dialog } from "modhost/admin";

/**
 * Returns the message about a failed change, and the position of the error in the source.
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
  const { message, place: location } = failure;
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>The previous instance keeps running.</p>
    <p class="note">${message}</p>
    ${location && html`<p><code>${location.file}:${location.line}</code></p>${location.text && html`<pre>${location.text}</pre>`}`}
  <//>`;
}
