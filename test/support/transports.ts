/** One client for three transports: every contract test runs over each of them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { test } from "node:test";
import { isolatedTransports, leftOut, outsideMode } from "./isolated_modules.ts";

/**
 * Timeout in milliseconds. Nothing on the loopback takes this long: an exchange that does has hung.
 */
const patience = 10_000;

export interface Call {
  readonly method?: string;
  /** The request target as it is sent: nothing is escaped or resolved. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Text and bytes are sent with their length. An iterable is sent in pieces, without a length. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array | string>;
}

export interface Reply {
  readonly status: number;
  /**
   * Field lines in order, with names as received (lower case in HTTP/2). Pseudo header fields are
   * left out.
   */
  readonly lines: readonly (readonly [name: string, value: string])[];
  /** Returns the value of a field, or undefined. Repeated lines are joined by ", ". */
  header(name: string): string | undefined;
  readonly bytes: Buffer;
  /** The body as UTF-8. */
  readonly text: string;
  readonly trailers: Readonly<Record<string, string | undefined>>;
}

/** A client of one port. It keeps connections open between requests until it is closed. */
export interface Ports {
  readonly http: number;
  readonly https: number;
}

class StreamClosed extends Error {
  readonly code: number;

  /** @param cause the error that ended the session */
  constructor(code: number, cause: Error | undefined) {
    super(`The stream was closed with code ${code} before a response arrived`, { cause });
    this.code = code;
  }
}

export class Client {
  readonly name: "HTTP/1.1" | "HTTPS/1.1" | "HTTP/2";
  readonly secure: boolean;
  readonly http2: boolean;
  readonly port: number;
  readonly #agent: http.Agent;
  #session: http2.ClientHttp2Session | undefined;

  constructor(name: Client["name"], ports: Ports) {
    this.name = name;
    this.secure = name !== "HTTP/1.1";
    this.http2 = name === "HTTP/2";
    this.port = this.secure ? ports.https : ports.http;
    const Agent = this.secure ? https.Agent : http.Agent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 4 });
  }

  request(call: Call | string): Promise<Reply> {
    const request = typeof call === "string" ? { path: call } : call;
    return this.http2 ? this.#overHttp2(request) : this.#overHttp1(request);
  }

  /** Resolves to the status alone. */
  async status(call: Call | string): Promise<number> {
    return (await this.request(call)).status;
  }

  /** Resolves to the body as text. The status must be 200. */
  async text(call: Call | string): Promise<string> {
    const reply = await this.request(call);
    assert.equal(reply.status, 200, `${typeof call === "string" ? call : call.path}: ${reply.text}`);
    return reply.text;
  }

  /** Resolves to the body as JSON. The status must be 200. */
  async json(call: Call | string): Promise<Record<string, unknown>> {
    return JSON.parse(await this.text(call)) as Record<string, unknown>;
  }

  close(): void {
    this.#agent.destroy();
    this.#session?.destroy();
  }

  async #overHttp1({ method = "GET", path, headers = {}, body }: Call): Promise<Reply> {
    const request = (this.secure ? https : http).request({
      host: "127.0.0.1",
      port: this.port,
      agent: this.#agent,
      method,
      path,
      headers: { ...lengthOf(body), ...headers } as http.OutgoingHttpHeaders,
      rejectUnauthorized: false,
      signal: AbortSignal.timeout(patience),
    });
    // A server that responds early may close the connection while the body is being sent. Only the
    // response counts.
    const responded = once(request, "response") as Promise<[http.IncomingMessage]>;
    sendBody(request, body).catch(() => undefined);
    const [response] = await responded;
    request.on("error", () => undefined);
    const bytes = await collect(response);
    const raw = response.rawHeaders;
    return reply(response.statusCode ?? 0, raw, bytes, response.trailers);
  }

  /**
   * A server that closes an idle session refuses requests that it has not seen. They are sent again
   * (RFC 9113, 8.7).
   */
  async #overHttp2(call: Call): Promise<Reply> {
    const session = this.#connection();
    try {
      return await this.#ask(session, call);
    } catch (error) {
      const isUnseen = error instanceof StreamClosed && error.code === http2.constants.NGHTTP2_REFUSED_STREAM;
      if (!isUnseen || !session.closed) throw error;
      return this.#ask(this.#connection(), call);
    }
  }

  async #ask(session: http2.ClientHttp2Session, { method = "GET", path, headers = {}, body }: Call): Promise<Reply> {
    const { host, ...others } = headers;
    const stream = session.request(
      {
        ":method": method,
        ":path": path,
        ...(host === undefined ? {} : { ":authority": String(host) }),
        ...lengthOf(body),
        ...(others as http2.OutgoingHttpHeaders),
      },
      { endStream: body === undefined, signal: AbortSignal.timeout(patience) },
    );
    let trailers: http2.IncomingHttpHeaders = {};
    stream.on("trailers", (fields: http2.IncomingHttpHeaders) => {
      trailers = fields;
    });
    let cause: Error | undefined;
    stream.on("error", (error) => {
      cause = error;
    });
    const responded = new Promise<[fields: http2.IncomingHttpHeaders, raw: string[]]>((resolve, reject) => {
      stream.once("response", (fields, _flags, raw) => resolve([fields, raw]));
      // This happens with or without an error: a session that ends closes its streams silently.
      stream.once("close", () => reject(new StreamClosed(stream.rstCode, cause)));
    });
    if (body !== undefined) sendBody(stream, body).catch(() => undefined);
    const [fields, raw] = await responded;
    const bytes = await collect(stream);
    return reply(Number(fields[":status"]), raw, bytes, trailers as Reply["trailers"]);
  }

  #connection(): http2.ClientHttp2Session {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = http2.connect(`https://127.0.0.1:${this.port}`, { rejectUnauthorized: false });
      this.#session.on("error", () => undefined);
    }
    return this.#session;
  }
}

const all = ["HTTP/1.1", "HTTPS/1.1", "HTTP/2"] as const;

export const transports: readonly Client["name"][] = all.filter((name) => isolatedTransports?.includes(name) ?? true);

/**
 * Declares one test per transport, titled `<title> over <transport>`. `host` is called when the
 * test runs, so it may be assigned in `before`.
 */
export function overEach<H extends { client(name: Client["name"]): Client }>(
  host: () => H,
  title: string,
  run: (client: Client, host: H) => Promise<void>,
): void {
  if (leftOut(title) !== undefined) return;
  const how = isolatedTransports === undefined ? "" : `, ${outsideMode}`;
  for (const name of transports) test(`${title} over ${name}${how}`, () => run(host().client(name), host()));
}

function reply(status: number, raw: readonly string[], bytes: Buffer, trailers: Reply["trailers"]): Reply {
  const lines: [string, string][] = [];
  for (let at = 0; at < raw.length; at += 2) {
    if (!raw[at]?.startsWith(":")) lines.push([raw[at] as string, raw[at + 1] as string]);
  }
  return {
    status,
    lines,
    header(name) {
      const values = lines.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
      return values.length === 0 ? undefined : values.join(", ");
    },
    bytes,
    // The text is made on demand: most large bodies are only compared as bytes.
    get text() {
      return bytes.toString("utf8");
    },
    trailers,
  };
}

function lengthOf(body: Call["body"]): Record<string, string> {
  if (typeof body === "string") return { "content-length": String(Buffer.byteLength(body)) };
  return body instanceof Uint8Array ? { "content-length": String(body.length) } : {};
}

async function sendBody(to: http.ClientRequest | http2.ClientHttp2Stream, body: Call["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    to.end(body);
    return;
  }
  for await (const piece of body) {
    if (to.destroyed) return;
    if (!to.write(piece)) await Promise.race([once(to, "drain"), once(to, "close")]);
  }
  to.end();
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
