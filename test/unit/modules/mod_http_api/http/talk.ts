/**
 * Calls whose body is written piece by piece while their response is read, over each protocol that
 * a client may use.
 */
import { once } from "node:events";
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { Duplex } from "node:stream";
import { eventually } from "#test/support/eventually.ts";
import type { TestHost } from "#test/support/host.ts";

const BOUNDARY = "both-ways";

/**
 * Returns the bytes of a part up to its end. The delimiter before it completes the previous part.
 */
export const part = (content: string | Buffer, filename = "", type = "application/octet-stream"): Buffer =>
  Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\n`),
    Buffer.from(`Content-Type: ${type}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from("\r\n"),
  ]);
export const closing = Buffer.from(`--${BOUNDARY}--\r\n`);
export const bodyType = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };

export const ways = ["HTTP/1.1 in chunks", "HTTP/1.1 with a length", "TLS", "HTTP/2"] as const;
export type Way = (typeof ways)[number];

export interface Target {
  readonly way: Way;
  readonly host: Pick<TestHost, "http" | "https">;
  readonly path: string;
  /** Length of the whole body, for the way that sends it. */
  readonly length?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export class Talk implements Disposable {
  status = 0;
  readonly lines: string[] = [];
  trailers: Readonly<Record<string, unknown>> = {};
  /** Whether the whole response has arrived. */
  isOver = false;
  error: Error | undefined;
  readonly #body: ClientRequest | http2.ClientHttp2Stream;
  readonly #end: () => void;
  #rest = "";
  #isReading = true;
  #response: IncomingMessage | Duplex | undefined;

  constructor({ way, host, path, length, headers: more }: Target) {
    const all = { ...bodyType, ...more };
    const target = `/api/v0/${path}`;
    if (way === "HTTP/2") {
      const session = http2.connect(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
      session.on("error", (error) => this.#failed(error));
      const stream = session.request({ ":method": "POST", ":path": target, ...all });
      this.#body = stream;
      this.#end = () => session.destroy();
      stream.on("response", ({ ":status": status }) => this.#receive(status ?? 0, stream));
      stream.on("trailers", (trailers) => void (this.trailers = trailers));
    } else {
      const { request } = way === "TLS" ? https : http;
      const port = way === "TLS" ? host.https : host.http;
      const sized = way === "HTTP/1.1 with a length" ? { "content-length": String(length) } : {};
      const options = {
        port,
        host: "127.0.0.1",
        method: "POST",
        path: target,
        agent: false,
        rejectUnauthorized: false,
      };
      const outgoing = request({ ...options, headers: { ...all, ...sized } });
      this.#body = outgoing;
      this.#end = () => void outgoing.destroy();
      outgoing.on("response", (incoming) => this.#receive(incoming.statusCode ?? 0, incoming));
    }
    this.#body.on("error", (error: Error) => this.#failed(error));
  }

  /** Resolves when the system has accepted the bytes. */
  async write(piece: Buffer): Promise<void> {
    if (!this.#body.write(piece)) await once(this.#body, "drain");
  }

  end(): void {
    this.#body.end();
  }

  /** Stops reading the response until `read` is called. */
  hold(): void {
    this.#isReading = false;
    this.#response?.pause();
  }

  read(): void {
    this.#isReading = true;
    this.#response?.resume();
  }

  /** Resolves when that many lines have arrived. */
  until(count: number): Promise<void> {
    return this.#eventually(`${count} lines`, () => this.lines.length >= count);
  }

  whole(): Promise<void> {
    return this.#eventually("the end of the response", () => this.isOver);
  }

  [Symbol.dispose](): void {
    this.#body.on("error", () => undefined);
    this.#end();
  }

  async #eventually(what: string, holds: () => boolean): Promise<void> {
    await eventually(what, () => holds() || this.error !== undefined);
    if (!holds()) throw this.error;
  }

  #failed(error: Error): void {
    this.error ??= error;
  }

  #receive(status: number, reply: IncomingMessage | Duplex): void {
    this.status = status;
    this.#response = reply;
    reply.setEncoding("utf8");
    reply.on("data", (text: string) => {
      const lines = `${this.#rest}${text}`.split("\n");
      this.#rest = lines.pop() ?? "";
      this.lines.push(...lines);
    });
    reply.on("error", (error: Error) => this.#failed(error));
    reply.on("end", () => {
      if ("trailers" in reply) this.trailers = reply.trailers;
      this.isOver = true;
    });
    if (!this.#isReading) reply.pause();
  }
}
