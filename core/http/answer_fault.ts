/** What a handler returned that is no answer: named for the log, with what to write instead. */
import { ModhostError } from "../util/errors.ts";

/** The fields of an answer as an object. */
const fields: ReadonlySet<string> = new Set(["status_code", "status", "headers", "body", "trailers"]);

/** What people write who come from elsewhere. */
const meant: Readonly<Record<string, string>> = {
  status: "status_code",
  statusCode: "status_code",
  code: "status_code",
  header: "headers",
  data: "body",
  text: "body",
  content: "body",
  json: "body: JSON.stringify(value)",
  type: "headers: { content_type }",
  contentType: "headers: { content_type }",
  content_type: "headers: { content_type }",
};

const wantJson = 'for JSON return json(value), with import { json } from "modhost"';
const wantFields = "an answer as an object is { status_code, headers, body }";

interface Fault {
  /** What the value is: "an array". */
  readonly what: string;
  readonly remedy: string;
}

/** By tag: to ask for the classes themselves would load them, and all of `fetch` with them. */
const foreigners: Readonly<Record<string, Fault | undefined>> = {
  Response: {
    what: "a Response of fetch",
    remedy: "return { status_code: r.status, headers: Object.fromEntries(r.headers), body: r.body }",
  },
  Blob: { what: "a Blob", remedy: "return blob.stream()" },
  File: { what: "a File", remedy: "return file.stream()" },
  ArrayBuffer: { what: "an ArrayBuffer", remedy: "return new Uint8Array(buffer)" },
};

/** What is wrong with a value that is no promise; undefined when it is an answer, or nothing. */
export function faultOf(value: unknown): Fault | undefined {
  if (typeof value === "bigint")
    return { what: "a bigint", remedy: "return String(value), or Number(value) for a status" };
  if (typeof value === "function") return { what: "a function", remedy: "call it, and return what it gives" };
  if (typeof value === "symbol") return { what: "a symbol", remedy: "return text, a status or an object" };
  if (typeof value !== "object" || value === null || value instanceof Error || isBody(value)) return undefined;
  if (Array.isArray(value)) return { what: "an array", remedy: wantJson };
  const foreign = isPlain(value) ? undefined : foreigners[tagOf(value)];
  if (foreign !== undefined) return foreign;
  for (const name of fields) if (name in value) return faultInFields(value);
  const [first, ...more] = Object.keys(value);
  if (first === undefined) return { what: `an empty ${nameOf(value)}`, remedy: `${wantFields}; ${wantJson}` };
  const listed = [first, ...more.slice(0, 4), ...(more.length > 4 ? ["..."] : [])].join(", ");
  return { what: `an ${nameOf(value)} with ${listed}`, remedy: `${wantFields}; ${wantJson}` };
}

function faultInFields(value: { status_code?: unknown; status?: unknown; headers?: unknown; body?: unknown }) {
  const { status_code, status, headers, body } = value;
  const wrong = (name: string, given: unknown, remedy: string): Fault => {
    return { what: `an object whose ${name} is ${kindOf(given)}`, remedy };
  };
  if (status_code !== undefined && !isStatus(status_code)) {
    return wrong("status_code", status_code, "write a whole number from 200 to 999");
  }
  if (status !== undefined && typeof status !== "string") {
    return wrong("status", status, "that is the reason phrase, a string: write status_code for the number");
  }
  if (isObject(headers) && !isPlain(headers) && /^(?:Headers|Map)$/.test(tagOf(headers))) {
    return wrong("headers", headers, "write Object.fromEntries(headers)");
  }
  if (headers !== undefined && headers !== null && (typeof headers !== "object" || Array.isArray(headers))) {
    return wrong("headers", headers, 'write { content_type: "text/plain; charset=utf-8" }');
  }
  return isBody(body) ? undefined : wrong("body", body, bodyRemedy);
}

/** What to write instead of a body that cannot be sent. */
export const bodyRemedy =
  'a body is a string, bytes, a stream or an async iterable; for JSON write JSON.stringify(value), or return json(value) of "modhost"';

/** What a value is, with its article, for messages. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = nameOf(value);
  return `${/^[AEIOUaeiou]/.test(name) ? "an" : "a"} ${name}`;
}

/** A field of an answer that means nothing to the host, with the one that is meant; undefined when there is none. */
export function strayField(value: object): { readonly field: string; readonly meant: string | undefined } | undefined {
  if (!isPlain(value)) return undefined;
  for (const field in value) if (!fields.has(field)) return { field, meant: meant[field] };
  return undefined;
}

/** The error that answers such a value. */
export function answerInvalid(route: string, { what, remedy }: Fault): ModhostError {
  const error = new ModhostError("ANSWER_INVALID", { route, what, remedy });
  // The frames would all be the host's own: what is wrong lies in the handler, which has returned.
  error.stack = String(error);
  return error;
}

/** Made by `{}`, or without a prototype. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function tagOf(value: object): string {
  return String((value as { readonly [Symbol.toStringTag]?: unknown })[Symbol.toStringTag]);
}

function isStatus(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 999;
}

function isBody(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === "string") return true;
  if (typeof body !== "object") return false;
  return body instanceof Uint8Array || body instanceof ReadableStream || Symbol.asyncIterator in body;
}

function nameOf(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof name === "string" && name !== "" && name !== "Object" ? name : "object";
}
