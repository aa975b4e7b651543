/**
 * Presents a request and response of HTTP/2 as the HTTP/1 objects that code for Node.js expects.
 * Express replaces the prototypes of both, so every method that reaches the stream is an own
 * property of the objects.
 */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { bindListeners } from "../../util/bound_listeners.ts";
import { IncomingMessage, ServerResponse, validateHeaderValue } from "../../util/node_http.ts";

export interface ClassicMessages {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const known = new WeakMap<Http2ServerRequest, ClassicMessages>();

/** Connection-specific fields, which HTTP/2 forbids (RFC 9113, 8.2.2). */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Returns the HTTP/1 objects of a request, the same ones on every call. */
export function classicMessages(request: Http2ServerRequest, response: Http2ServerResponse): ClassicMessages {
  let made = known.get(request);
  if (made === undefined) {
    const classic = requestOf(request);
    made = { request: classic, response: responseOf(classic, response) };
    bindListeners(made.request);
    bindListeners(made.response);
    known.set(request, made);
  }
  return made;
}

function requestOf(raw: Http2ServerRequest): IncomingMessage {
  const message = new IncomingMessage(raw.socket);
  const rawHeaders: string[] = [];
  let hasHost = false;
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at] as string;
    if (name.startsWith(":")) continue;
    hasHost ||= name === "host";
    rawHeaders.push(name, raw.rawHeaders[at + 1] as string);
  }
  if (!hasHost && raw.authority) rawHeaders.unshift("host", raw.authority);
  const headers = Object.fromEntries(Object.entries(raw.headers).filter(([name]) => !name.startsWith(":")));
  if (!hasHost && raw.authority) headers.host = raw.authority;
  const { method, url, httpVersion, httpVersionMajor, httpVersionMinor } = raw;
  Object.assign(message, { method, url, httpVersion, httpVersionMajor, httpVersionMinor, rawHeaders, headers });
  let isReading = false;
  const read = () => {
    if (isReading) {
      raw.resume();
      return;
    }
    isReading = true;
    raw.on("data", (chunk: Buffer) => {
      if (!message.push(chunk)) raw.pause();
    });
    raw.once("end", () => {
      message.complete = true;
      Object.assign(message, { trailers: raw.trailers, rawTrailers: raw.rawTrailers });
      message.push(null);
    });
  };
  raw.once("aborted", () => {
    message.aborted = true;
    message.emit("aborted");
  });
  raw.once("close", () => {
    if (!message.destroyed) message.destroy();
  });
  Object.assign(message, {
    _read: read,
    _destroy(error: Error | null, done: (error: Error | null) => void) {
      // Destroying the request must not end the response.
      if (isReading) raw.resume();
      done(error);
    },
    setTimeout(milliseconds: number, callback?: () => void) {
      raw.setTimeout(milliseconds, callback);
      return message;
    },
  });
  return message;
}

type Callback = () => void;
type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/**
 * Throws as HTTP/1 does. Node's HTTP/2 would send the low byte of each character, which can be a
 * zero or a line break.
 */
function validate(name: string, value: Headers[string]): void {
  for (const one of [value].flat()) if (one !== undefined) validateHeaderValue(name, String(one));
}

function validateAll(headers: Headers): void {
  for (const [name, value] of Object.entries(headers)) validate(name, value);
}

/**
 * Header methods that write to the HTTP/2 response at once, because the host reads the headers
 * there.
 */
function fieldsOf(message: ServerResponse, raw: Http2ServerResponse) {
  const setHeader = (name: string, value: number | string | readonly string[]) => {
    validate(name, value);
    if (!ofConnection.has(name.toLowerCase())) raw.setHeader(name, value as string);
    return message;
  };
  const setAll = (headers: Headers | readonly unknown[] | undefined) => {
    for (const [name, value] of pairsOf(headers ?? {})) if (value !== undefined) setHeader(name, value);
  };
  return {
    setAll,
    setHeader,
    setHeaders(headers: Iterable<readonly [string, string]>) {
      for (const [name, value] of headers) setHeader(name, value);
      return message;
    },
    appendHeader(name: string, value: string) {
      validate(name, value);
      if (!ofConnection.has(name.toLowerCase())) raw.appendHeader(name, value);
      return message;
    },
    getHeader: (name: string) => raw.getHeader(name),
    getHeaders: () => raw.getHeaders(),
    getHeaderNames: () => raw.getHeaderNames(),
    hasHeader: (name: string) => raw.hasHeader(name),
    removeHeader: (name: string) => raw.removeHeader(name),
  };
}

function responseOf(request: IncomingMessage, raw: Http2ServerResponse): ServerResponse {
  const message = new ServerResponse(request);
  const { setAll, ...fields } = fieldsOf(message, raw);
  const begin = () => {
    if (!raw.headersSent) message.writeHead(message.statusCode);
  };
  for (const event of ["finish", "close", "drain", "error", "pipe", "unpipe"])
    raw.on(event, (...values: unknown[]) => message.emit(event, ...values));
  Object.assign(message, {
    ...fields,
    writeHead(status: number, phrase?: string | Headers, headers?: Headers | readonly unknown[]) {
      setAll(typeof phrase === "string" ? headers : (phrase ?? headers));
      raw.statusCode = status;
      if (!raw.headersSent) raw.writeHead(status);
      return message;
    },
    flushHeaders: begin,
    writeContinue: () => raw.writeContinue(),
    writeProcessing: () => undefined,
    writeEarlyHints(hints: Record<string, string | string[]>) {
      validateAll(hints);
      raw.writeEarlyHints(hints);
    },
    addTrailers(trailers: Headers) {
      validateAll(trailers);
      raw.addTrailers(trailers as never);
    },
    write(chunk: string | Uint8Array, encoding?: BufferEncoding | Callback, done?: Callback) {
      begin();
      return typeof encoding === "function"
        ? raw.write(chunk, encoding)
        : raw.write(chunk, encoding as BufferEncoding, done);
    },
    end(chunk?: string | Uint8Array | Callback, encoding?: BufferEncoding | Callback, done?: Callback) {
      begin();
      if (typeof chunk === "function") raw.end(chunk);
      else if (chunk === undefined || chunk === null) raw.end(typeof encoding === "function" ? encoding : done);
      else if (typeof encoding === "function") raw.end(chunk, encoding);
      else raw.end(chunk, encoding as BufferEncoding, done);
      return message;
    },
    destroy(error?: Error) {
      raw.destroy(error);
      return message;
    },
    setTimeout(milliseconds: number, callback?: Callback) {
      raw.setTimeout(milliseconds, callback);
      return message;
    },
    cork: () => raw.cork(),
    uncork: () => raw.uncork(),
    socket: raw.socket,
    connection: raw.socket,
  });
  Object.defineProperties(message, {
    ...mirrored(raw, ["headersSent", "finished", "writableEnded", "writableFinished", "writableLength", "destroyed"]),
    ...mirrored(raw, ["writable", "writableNeedDrain", "writableHighWaterMark", "writableCorked", "closed", "errored"]),
    statusCode: {
      configurable: true,
      enumerable: true,
      get: () => raw.statusCode,
      set(status: number) {
        raw.statusCode = status;
      },
    },
  });
  return message;
}

function mirrored(raw: object, names: readonly string[]): PropertyDescriptorMap {
  const field = (name: string) => ({
    configurable: true,
    enumerable: true,
    get: () => (raw as Record<string, unknown>)[name],
    set: () => undefined,
  });
  return Object.fromEntries(names.map((name) => [name, field(name)]));
}

/**
 * Returns the headers of `writeHead` as pairs. They come as an object, as pairs, or as alternating
 * names and values.
 */
function pairsOf(headers: Headers | readonly unknown[]): (readonly [string, Headers[string]])[] {
  if (!Array.isArray(headers)) return Object.entries(headers as Headers);
  if (Array.isArray(headers[0])) return headers as (readonly [string, string])[];
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name as string, headers[at + 1] as string] as const] : []));
}
