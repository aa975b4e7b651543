import type { ServerEvent } from "../../types.ts";

/**
 * Formats an event for the wire. Throws a TypeError for a value that would not arrive unchanged.
 */
export function eventText(event: ServerEvent | string): string {
  const { event: type, data, id, retry } = typeof event === "string" ? { data: event } : (event as ServerEvent);
  let text = "";
  if (type !== undefined) text += `event: ${oneLine("event", type)}\n`;
  if (id !== undefined) text += `id: ${oneLine("id", id)}\n`;
  if (retry !== undefined) {
    if (!Number.isSafeInteger(retry) || retry < 0)
      throw new TypeError(`retry is a number of milliseconds, not ${retry}`);
    text += `retry: ${retry}\n`;
  }
  // Without data there is no event for the client, only an id or a retry time that it keeps.
  if (data !== undefined || type !== undefined) text += lines("data: ", data ?? "");
  return `${text}\n`;
}

/** Formats a comment, which clients ignore. */
export function commentText(text: string): string {
  return `${lines(": ", text)}\n`;
}

function lines(prefix: string, text: string): string {
  if (typeof text !== "string") throw new TypeError(`The data of an event is text, not a ${typeof text}`);
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `${prefix}${line}\n`)
    .join("");
}

function oneLine(field: string, text: string): string {
  // A client ignores an id with a NUL.
  if (typeof text !== "string" || /[\r\n\0]/.test(text)) {
    throw new TypeError(`The ${field} of an event is text without line breaks, not ${JSON.stringify(text)}`);
  }
  return text;
}
