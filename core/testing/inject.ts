import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIPv6, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { request as httpRequest } from "../util/node_http.ts";
import { socketPair } from "./memory_socket.ts";

export type InjectedBody = string | Uint8Array | URLSearchParams | FormData | AsyncIterable<string | Uint8Array>;

/** The client, as handlers see it from the connection. */
export interface Caller {
  /**
   * Whether the connection counts as encrypted, as if it had come in through HTTPS. Default false.
   */
  readonly secure?: boolean;
  /** Default 127.0.0.1. */
  readonly remote_address?: string;
  /** Name of the service that takes the connection. Default "http"; the Admin API is "admin". */
  readonly service?: string;
}

/** A request that goes through the whole host without a port. */
export interface InjectedRequest extends Caller {
  /** Default GET. */
  readonly method?: string;
  /** Path and query, sent unchanged. Default "/". */
  readonly path?: string;
  /** A URL instead of path, host and secure, or a path that is escaped and resolved. */
  readonly url?: string | URL;
  /**
   * Header names may have `_` for `-`; a list is one line per value, and undefined removes a
   * default header.
   */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /**
   * Text and bytes are sent with their length; streams and async iterables in chunks as they
   * arrive. Forms set their Content-Type.
   */
  readonly body?: InjectedBody | undefined;
  /** The Host header. Default "localhost". */
  readonly host?: string;
  /** Aborts the connection. */
  readonly signal?: AbortSignal;
}

/** Names in `headers` and `trailers` are in lower case, with dashes. */
interface Head {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** A complete response. */
export interface InjectedResponse extends Head {
  readonly trailers: Readonly<Record<string, string | undefined>>;
  /** The body as text. */
  readonly body: string;
  bytes(): Buffer;
  json<T = unknown>(): T;
}

/** A response that is still arriving. */
export interface InjectedStream extends Head, AsyncDisposable {
  /** Fails if the host breaks the connection. While nobody reads it, the host has to wait. */
  readonly body: Readable;
  /** Complete after the body has ended. */
  readonly trailers: Readonly<Record<string, string | undefined>>;
  /**
   * Closes the connection and waits until the host has noticed. Before the end of the body this
   * acts like a client that disconnects.
   */
  close(): Promise<void>;
}

/** Passes the server end of a connection to the host. */
export type Accept = (socket: Socket) => void;

/**
 * Opens a connection to the host, for protocols that `inject` does not support; the caller must end
 * it.
 */
export function openConnection(accept: Accept, caller: Caller = {}): Socket {
  return ends(accept, caller).client;
}

/**
 * Sends a request; resolves to the complete response, once the host has finished with it.
 * @throws Error when the host breaks the connection, the reason of `signal`, or the error of the
 * body
 */
export async function inject(accept: Accept, request: InjectedRequest | string): Promise<InjectedResponse> {
  const { injected, explain } = await exchange(accept, request);
  await using open = injected;
  const chunks: Buffer[] = await open.body.toArray().catch((error: unknown) => {
    throw explain(error, "before the response was complete");
  });
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString("utf8");
  const { status, headers, trailers } = open;
  return { status, headers, trailers, body: text, bytes: () => bytes, json: <T>() => JSON.parse(text) as T };
}

/** Works as `inject`, but resolves as soon as the response starts. */
export async function injectStream(accept: Accept, request: InjectedRequest | string): Promise<InjectedStream> {
  return (await exchange(accept, request)).injected;
}

interface Exchange {
  readonly injected: InjectedStream;
  /** Returns the reason for a connection that broke at some stage. */
  explain(error: unknown, stage: string): unknown;
}

async function exchange(accept: Accept, given: InjectedRequest | string): Promise<Exchange> {
  const request = typeof given === "string" ? { path: given } : given;
  const { method = "GET", body, signal } = request;
  const { path, host, secure } = targetOf(request);
  const message = await encoded(body);
  const { client, gone } = ends(accept, { ...request, secure });
  const sent = httpRequest({
    method,
    path,
    setHost: false,
    // The header of a client that keeps its connection; this one is ended all the same.
    headers: merged({ Host: host, Connection: "keep-alive", ...message.headers }, request.headers),
    createConnection: () => client,
    ...(signal === undefined ? {} : { signal }),
  });
  let fault: { readonly error: unknown } | undefined;
  const explain = (error: unknown, stage: string) => {
    if (fault !== undefined) return fault.error;
    if (signal?.aborted === true) return signal.reason;
    return new Error(`${method} ${path}: the connection was broken ${stage}`, { cause: error });
  };
  const beginning = Promise.withResolvers<IncomingMessage>();
  const failed = (error?: unknown) => beginning.reject(explain(error, "before the response began"));
  sent.on("response", beginning.resolve).on("error", failed).on("close", failed);
  sent.on("upgrade", (_response, socket) => {
    socket.destroy();
    beginning.reject(new Error(`${method} ${path}: the response switches protocols: use connect()`));
  });
  const noted = (error: unknown) => void (fault = { error });
  // An error while sending shows in the response, or in a missing one.
  if (message.pieces === undefined) sent.end(message.bytes);
  else pipeline(watched(message.pieces, noted), sent).catch(() => undefined);

  const response = await beginning.promise;
  const close = async () => {
    if (response.complete && sent.writableFinished) client.end();
    else client.destroy();
    await gone;
    client.destroy();
  };
  const injected: InjectedStream = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    trailers: response.trailers,
    body: response,
    close,
    [Symbol.asyncDispose]: close,
  };
  return { injected: injected, explain };
}

let lastPort = 49_151;

/**
 * Creates both ends of a connection and passes the server end to the host; `gone` resolves when the
 * host has closed it.
 */
function ends(accept: Accept, { secure = false, remote_address = "127.0.0.1" }: Caller) {
  lastPort = lastPort < 65_535 ? lastPort + 1 : 49_152;
  const near = { address: remote_address, port: lastPort };
  const far = { address: isIPv6(remote_address) ? "::1" : "127.0.0.1", port: secure ? 443 : 80 };
  const [client, server] = socketPair(
    { local: near, remote: far, encrypted: secure },
    { local: far, remote: near, encrypted: secure },
  );
  const gone = new Promise<void>((resolve) => server.once("close", () => resolve()));
  accept(server);
  return { client, gone };
}

function targetOf({ url, path = "/", host = "localhost", secure = false }: InjectedRequest) {
  if (url === undefined) return { path, host, secure };
  const at = new URL(url, "http://localhost");
  return { path: `${at.pathname}${at.search}`, host: at.host, secure: at.protocol === "https:" };
}

type Fields = Record<string, string | string[]>;

/** Returns the default header fields, overridden by others. */
function merged(defaults: Fields, others: InjectedRequest["headers"] = {}): Fields {
  const fields = new Map(Object.entries(defaults).map(([name, value]) => [name.toLowerCase(), { name, value }]));
  for (const [key, value] of Object.entries(others)) {
    const name = key.replaceAll("_", "-");
    if (value === undefined) fields.delete(name.toLowerCase());
    else fields.set(name.toLowerCase(), { name, value: typeof value === "string" ? value : [...value] });
  }
  // A body with a given length is sent without chunks.
  if (fields.has("content-length")) fields.delete("transfer-encoding");
  return Object.fromEntries([...fields.values()].map(({ name, value }) => [name, value]));
}

interface Message {
  readonly headers: Fields;
  readonly bytes?: Uint8Array;
  readonly pieces?: AsyncIterable<string | Uint8Array>;
}

async function encoded(body: InjectedBody | undefined): Promise<Message> {
  if (body === undefined) return { headers: {} };
  if (body instanceof FormData || body instanceof URLSearchParams) {
    const form = new Response(body);
    const { headers, ...message } = whole(new Uint8Array(await form.arrayBuffer()));
    return { ...message, headers: { ...headers, "Content-Type": form.headers.get("content-type") ?? "" } };
  }
  if (typeof body === "string" || body instanceof Uint8Array) return whole(Buffer.from(body));
  return { headers: { "Transfer-Encoding": "chunked" }, pieces: body };
}

function whole(bytes: Uint8Array): Message {
  return { headers: { "Content-Length": String(bytes.length) }, bytes };
}

async function* watched<T>(pieces: AsyncIterable<T>, failed: (error: unknown) => void): AsyncGenerator<T> {
  try {
    yield* pieces;
  } catch (error) {
    failed(error);
    throw error;
  }
}
