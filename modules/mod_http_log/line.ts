import type { HttpFinishedEvent } from "../../core/types.ts";

/** Anything but printable ASCII that JSON text holds as it is. */
const special = /[^ !#-[\]-~]/;

const quote = (text: string): string => (special.test(text) ? JSON.stringify(text) : `"${text}"`);

const MAX_REMEMBERED_TEXTS = 500;
const MAX_REMEMBERED_LENGTH = 200;

/** Writes one field of the line. Most clients send what others sent before: the form of short texts is kept. */
function fieldOf(name: string): (text: string | undefined) => string {
  const known = new Map<string, string>();
  return (text) => {
    if (text === undefined) return "";
    let form = known.get(text);
    if (form === undefined) {
      form = `,"${name}":${quote(text)}`;
      if (known.size >= MAX_REMEMBERED_TEXTS) known.clear();
      if (text.length <= MAX_REMEMBERED_LENGTH) known.set(text, form);
    }
    return form;
  };
}

const host = fieldOf("host");
const path = fieldOf("path");
const query = fieldOf("query");
const app = fieldOf("app");
const agent = fieldOf("agent");
const referer = fieldOf("referer");
const token = fieldOf("token");

/**
 * One line in the form that the host's log (pino) has. Written out here, since this runs for every request and going
 * over the object's fields costs several times as much as all the rest of the log.
 */
export function jsonLine(
  event: HttpFinishedEvent,
  shown: {
    readonly path: string;
    readonly query: string | undefined;
    readonly agent: string | undefined;
    readonly referer: string | undefined;
    readonly slow: boolean;
  },
): string {
  const { request } = event;
  const { headers } = request;
  const level = shown.slow ? "warn" : "info";
  // Most answers are complete: only the others say so.
  const complete = event.complete ? "" : ',"complete":false';
  return (
    `{"level":"${level}"${timeField()},"id":"${request.id}","ip":${quote(request.ip)},"method":"${request.method}"` +
    `${host(headers.host)}${path(shown.path)}${query(shown.query)}` +
    `,"status":${event.status},"bytes":${event.bytes},"ms":${Math.round(event.duration * 100) / 100}` +
    `${app(event.app)}${token(request.token?.name)}${agent(shown.agent)}${referer(shown.referer)}${complete}}\n`
  );
}

let second = 0;
let prefix = "";

/** The time as pino writes it, ISO 8601, made anew only for its milliseconds. */
function timeField(): string {
  const now = Date.now();
  const current = now - (now % 1000);
  if (current !== second) {
    second = current;
    prefix = `,"time":"${new Date(current).toISOString().slice(0, 20)}`;
  }
  return `${prefix}${String(now - current).padStart(3, "0")}Z"`;
}
