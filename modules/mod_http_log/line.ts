import type { HttpFinishedEvent } from "../../core/types.ts";

/** Matches characters that JSON text must escape, and everything outside of printable ASCII. */
const special = /[^ !#-[\]-~]/;

const quote = (text: string): string => (special.test(text) ? JSON.stringify(text) : `"${text}"`);

const MAX_REMEMBERED_TEXTS = 500;
const MAX_REMEMBERED_LENGTH = 200;

/**
 * Returns a function that writes one field. It caches short texts in their written form, because
 * most clients send the same few texts.
 */
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
 * Returns one line in the format of the host's log. The fields are written out here, because this
 * runs for every request, and iterating over an object costs several times as much as the rest of
 * the log.
 */
export function jsonLine(
  event: HttpFinishedEvent,
  shown: {
    readonly path: string;
    readonly query: string | undefined;
    readonly agent: string | undefined;
    readonly referer: string | undefined;
    readonly slow: boolean;
    readonly traced: Readonly<Record<string, unknown>> | undefined;
  },
): string {
  const { request } = event;
  const level = shown.slow ? "warn" : "info";
  // Most responses are complete, so only incomplete ones have the field.
  const complete = event.complete ? "" : ',"complete":false';
  const traced = shown.traced === undefined ? "" : tracedText(shown.traced);
  return (
    `{"level":"${level}"${timeField()},"id":"${request.id}","ip":${quote(request.ip)},"method":"${request.method}"` +
    `${host(request.header("host"))}${path(shown.path)}${query(shown.query)}` +
    `,"status":${event.status},"bytes":${event.bytes},"ms":${Math.round(event.duration * 100) / 100}` +
    `${app(event.app)}${token(request.token?.name)}${agent(shown.agent)}${referer(shown.referer)}${complete}${traced}}\n`
  );
}

function tracedText(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `,${quote(name)}:${JSON.stringify(value) ?? "null"}`)
    .join("");
}

let second = 0;
let prefix = "";

/** Returns the time in ISO 8601. Only the milliseconds are formatted each time. */
function timeField(): string {
  const now = Date.now();
  const current = now - (now % 1000);
  if (current !== second) {
    second = current;
    prefix = `,"time":"${new Date(current).toISOString().slice(0, 20)}`;
  }
  return `${prefix}${String(now - current).padStart(3, "0")}Z"`;
}
