/**
 * Checks what a handler returned. Describes a value that is not a response for the log, with what
 * to write instead.
 */
import { ModhostError } from "../../util/errors.ts";

/** The fields of a response object. */
const fields: ReadonlySet<string> = new Set(["status_code", "status", "headers", "body", "trailers"]);

/** Field names of other frameworks, with the host's own. */
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
const wantFields = "a response object is { status_code, headers, body }";

interface Fault {
  /** A description of the value: "an array". */
  readonly what: string;
  readonly remedy: string;
}

/**
 * Values that other frameworks return, by the tag of their class. A reference to the classes
 * themselves would load them, and all of `fetch` with them.
 */
const foreigners: Readonly<Record<string, Fault | undefined>> = {
  Response: {
    what: "a Response of fetch",
    remedy: "return { status_code: r.status, headers: Object.fromEntries(r.headers), body: r.body }",
  },
  Blob: { what: "a Blob", remedy: "return blob.stream()" },
  File: { what: "a File", remedy: "return file.stream()" },
  ArrayBuffer: { what: "an ArrayBuffer", remedy: "return new Uint8Array(buffer)" },
};

/**
 * Returns why a value, which is not a promise, is not a response; undefined for a response or for
 * no value.
 */
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

/** The advice for a body that cannot be sent. */
export const bodyRemedy =
  'a body is a string, bytes, a stream or an async iterable; for JSON write JSON.stringify(value), or return json(value) of "modhost"';

/** Describes a value with its article, for messages. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = nameOf(value);
  return `${/^[AEIOUaeiou]/.test(name) ? "an" : "a"} ${name}`;
}

/**
 * Returns a field of a response object that the host ignores, with the field that was probably
 * meant; undefined when there is none.
 */
export function strayField(value: object): { readonly field: string; readonly meant: string | undefined } | undefined {
  if (!isPlain(value)) return undefined;
  for (const field in value) if (!fields.has(field)) return { field, meant: meant[field] };
  return undefined;
}

/** Creates the error for a value that is not a response. */
export function resultInvalid(route: string, { what, remedy }: Fault): ModhostError {
  const error = new ModhostError("RESULT_INVALID", { route, what, remedy });
  // All stack frames would be the host's own, but the mistake is in the handler, which has
  // returned.
  error.stack = String(error);
  return error;
}

/** Whether the object was made by `{}` or has no prototype. */
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

export const RESET_CONTENT = 205;

/** Whether responses with the status have no body and no length. */
export function bodiless(status: number): boolean {
  return status === 204 || status === 304;
}

/** @throws {RangeError} for a status that ends no response: a client waits for more after 103 */
export function assertStatus(status: unknown): void {
  if (!isStatus(status))
    throw new RangeError(`response.status_code is ${status}: a status is a whole number from 200 to 999`);
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

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}
