import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIPv6, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { request as httpRequest } from "../util/node_http.ts";
import { socketPair } from "./memory_socket.ts";

export type InjectedBody = string | Uint8Array | URLSearchParams | FormData | AsyncIterable<string | Uint8Array>;

/** Who asks: what the handlers see of the connection. */
export interface Caller {
  /** The connection counts as encrypted, as if it had come in through HTTPS. Default false. */
  readonly secure?: boolean;
  /** Default 127.0.0.1. */
  readonly remote_address?: string;
}

/** A request that goes through the whole host, and through no port. */
export interface InjectedRequest extends Caller {
  /** Default GET. */
  readonly method?: string;
  /** Path and query, sent as they are. Default "/". */
  readonly path?: string;
  /** In place of path, host and secure: a URL, or a path that is to be escaped and resolved. */
  readonly url?: string | URL;
  /** Names may have `_` for `-`; a list is one line per value, undefined takes away what is sent otherwise. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /**
   * Text and bytes are sent with their length, what comes in pieces (streams, async iterables) in chunks as it comes. Forms
   * bring their Content-Type.
   */
  readonly body?: InjectedBody | undefined;
  /** The Host header. Default "localhost". */
  readonly host?: string;
  /** Breaks the connection when it is aborted. */
  readonly signal?: AbortSignal;
}

/** Names of `headers` and `trailers` are in lower case, with dashes. */
interface Head {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** A whole answer. */
export interface InjectedAnswer extends Head {
  readonly trailers: Readonly<Record<string, string | undefined>>;
  /** The body as text. */
  readonly body: string;
  bytes(): Buffer;
  json<T = unknown>(): T;
}

/** An answer on its way. */
export interface InjectedStream extends Head, AsyncDisposable {
  /** Fails when the host breaks the connection. The host is held back while nobody reads. */
  readonly body: Readable;
  /** Complete once the body has ended. */
  readonly trailers: Readonly<Record<string, string | undefined>>;
  /** Ends the connection, before the end of the body as a client that goes away, and waits until the host has noticed. */
  close(): Promise<void>;
}

/** Gives the far end of a connection to the host. */
export type Accept = (socket: Socket) => void;

/** A connection to the host, for what `inject` does not speak; whoever opens it ends it. */
export function openConnection(accept: Accept, caller: Caller = {}): Socket {
  return ends(accept, caller).client;
}

/**
 * Sends a request and gives the whole answer, once the host has finished with it.
 * @throws Error when the host breaks the connection, what `signal` is aborted with, what the body throws
 */
export async function inject(accept: Accept, request: InjectedRequest | string): Promise<InjectedAnswer> {
  const { answer, explain } = await exchange(accept, request);
  await using open = answer;
  const chunks: Buffer[] = await open.body.toArray().catch((error: unknown) => {
    throw explain(error, "before the answer was complete");
  });
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString("utf8");
  const { status, headers, trailers } = open;
  return { status, headers, trailers, body: text, bytes: () => bytes, json: <T>() => JSON.parse(text) as T };
}

/** As `inject`, but gives the answer as soon as it begins. */
export async function injectStream(accept: Accept, request: InjectedRequest | string): Promise<InjectedStream> {
  return (await exchange(accept, request)).answer;
}

interface Exchange {
  readonly answer: InjectedStream;
  /** The reason for a connection that broke at some stage. */
  explain(error: unknown, stage: string): unknown;
}

async function exchange(accept: Accept, given: InjectedRequest | string): Promise<Exchange> {
  const asked = typeof given === "string" ? { path: given } : given;
  const { method = "GET", body, signal } = asked;
  const { path, host, secure } = targetOf(asked);
  const message = await encoded(body);
  const { client, gone } = ends(accept, { ...asked, secure });
  const sent = httpRequest({
    method,
    path,
    setHost: false,
    // What a client says that keeps its connection; this one is ended all the same.
    headers: merged({ Host: host, Connection: "keep-alive", ...message.headers }, asked.headers),
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
  const failed = (error?: unknown) => beginning.reject(explain(error, "before the answer began"));
  sent.on("response", beginning.resolve).on("error", failed).on("close", failed);
  sent.on("upgrade", (_response, socket) => {
    socket.destroy();
    beginning.reject(new Error(`${method} ${path}: the answer switches protocols, for which there is connect()`));
  });
  const noted = (error: unknown) => void (fault = { error });
  // What breaks the sending shows in the answer, or in its absence.
  if (message.pieces === undefined) sent.end(message.bytes);
  else pipeline(watched(message.pieces, noted), sent).catch(() => undefined);

  const response = await beginning.promise;
  const close = async () => {
    if (response.complete && sent.writableFinished) client.end();
    else client.destroy();
    await gone;
    client.destroy();
  };
  const answer: InjectedStream = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    trailers: response.trailers,
    body: response,
    close,
    [Symbol.asyncDispose]: close,
  };
  return { answer, explain };
}

let lastPort = 49_151;

/** Both ends of a new connection, the far one with the host; `gone` when the host is done with it. */
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

/** Other fields over those that are sent otherwise. */
function merged(defaults: Fields, others: InjectedRequest["headers"] = {}): Fields {
  const fields = new Map(Object.entries(defaults).map(([name, value]) => [name.toLowerCase(), { name, value }]));
  for (const [key, value] of Object.entries(others)) {
    const name = key.replaceAll("_", "-");
    if (value === undefined) fields.delete(name.toLowerCase());
    else fields.set(name.toLowerCase(), { name, value: typeof value === "string" ? value : [...value] });
  }
  // Who gives the length of a body in pieces does without chunks.
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
