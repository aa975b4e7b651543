/**
 * Clients that behave as no library does: they send exactly what they are given, read as much as
 * they like, and disconnect.
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { Readable } from "node:stream";

export interface ClientCall {
  readonly path: string;
  /** Number of bytes after which the client disconnects. */
  readonly enough: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ReceivedResponse {
  /** 0: no response. */
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly bytes: number;
  readonly end: "whole" | "broken" | "left";
  /** The beginning of the body. */
  readonly start: string;
}

/** Timeout for a response: much longer than any machine needs. */
const PATIENCE_MS = 300_000;

const nothing = { headers: {}, bytes: 0, start: "" } as const;
const NONE: ReceivedResponse = { status: 0, end: "broken", ...nothing };

export async function overHttp1(port: number, { path, headers = {}, enough }: ClientCall): Promise<ReceivedResponse> {
  const sent = request({
    port,
    host: "127.0.0.1",
    path,
    headers: { connection: "close", ...headers },
    agent: false,
    maxHeaderSize: 2 ** 22,
  });
  const timer = setTimeout(() => sent.destroy(new Error("hangs")), PATIENCE_MS);
  sent.on("error", () => undefined).end();
  try {
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const read = await taken(response, enough, () => response.complete);
    sent.destroy();
    return { status: response.statusCode ?? 0, headers: response.headers, ...read };
  } catch (error) {
    if ((error as Error).message === "hangs") throw error;
    return NONE;
  } finally {
    clearTimeout(timer);
  }
}

/** Sends requests in one session, and in a new one once that is broken. */
export class Http2Client {
  readonly #port: number;
  #session: ClientHttp2Session | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  ask(call: ClientCall): Promise<ReceivedResponse> {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = openSession(this.#port);
    }
    return inSession(this.#session, call);
  }

  close(): void {
    this.#session?.destroy();
  }
}

function openSession(port: number): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    maxHeaderListPairs: 1000,
    settings: { maxHeaderListSize: 2 ** 22, enablePush: false },
    maxSendHeaderBlockLength: 2 ** 22,
  });
  return session.on("error", () => undefined);
}

async function inSession(
  session: ClientHttp2Session,
  { path, headers = {}, enough }: ClientCall,
): Promise<ReceivedResponse> {
  const { host, ...others } = headers;
  const stream = session.request(
    { ":path": path, ...(host === undefined ? {} : { ":authority": host }), ...others },
    { endStream: true },
  );
  const timer = setTimeout(() => stream.destroy(new Error("hangs")), PATIENCE_MS);
  let failed: Error | undefined;
  stream.on("error", (error) => {
    failed = error;
  });
  const fields = await new Promise<Record<string, unknown> | undefined>((resolve) => {
    stream.once("response", resolve);
    stream.once("close", () => resolve(undefined));
  });
  const read = fields && (await taken(stream, enough, () => !failed && stream.rstCode === constants.NGHTTP2_NO_ERROR));
  clearTimeout(timer);
  stream.close(constants.NGHTTP2_CANCEL);
  if (failed?.message === "hangs") throw failed;
  if (fields === undefined || read === undefined) return NONE;
  return { status: Number(fields[":status"]), headers: fields, ...read };
}

async function taken(
  body: Readable,
  enough: number,
  isWhole: () => boolean,
): Promise<Pick<ReceivedResponse, "bytes" | "end" | "start">> {
  let bytes = 0;
  let start = "";
  try {
    for await (const piece of body) {
      if (start.length < 4096) start += (piece as Buffer).toString("latin1");
      bytes += (piece as Buffer).length;
      if (bytes > enough) return { bytes, start, end: "left" };
    }
  } catch {
    return { bytes, start, end: "broken" };
  }
  return { bytes, start, end: isWhole() ? "whole" : "broken" };
}

/** A client that sends a request and reads nothing of the response. */
export interface SlowReader {
  /** Resolves to the status when the response has begun. */
  readonly begun: Promise<number>;
  leave(): void;
}

export function slowReader(port: number, path: string): SlowReader {
  const sent = request({ port, host: "127.0.0.1", path, agent: false });
  const begun = new Promise<number>((resolve) => {
    sent.once("response", (response) => {
      response.on("error", () => undefined);
      resolve(response.statusCode ?? 0);
    });
    sent.once("error", () => resolve(0));
  });
  sent.on("error", () => undefined).end();
  return { begun, leave: () => void sent.destroy() };
}
