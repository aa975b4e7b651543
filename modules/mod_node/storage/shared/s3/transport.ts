/**
 * Sends a single request to an S3 store: signs it, sends it and reads the response. Does not retry.
 */
import type { Readable } from "node:stream";
import type { Pool } from "undici";
import { agentVersion } from "../../../util/agent_version.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { reusingBuffers } from "./connections.ts";
import type { CredentialSource, Credentials } from "./credentials.ts";
import { faultOf, S3Fault, STALE_CREDENTIALS } from "./faults.ts";
import { IncomingResponse } from "./incoming_response.ts";
import type { RequestMetrics } from "./metrics.ts";
import type { Payload } from "./objects.ts";
import { reusedPieces } from "./payload.ts";
import type { S3Address } from "./settings.ts";
import { encoded, Signer } from "./signing.ts";

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** The key with the prefix; empty for the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly payload: Payload; readonly sha256: string } | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Deadline of a call that has failed before, in the time of `performance.now()`. A stalled store
   * is not waited for longer, so the call ends soon after this time.
   */
  readonly end?: number | undefined;
  readonly metrics: RequestMetrics;
}

export interface S3Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /**
   * Calls `take` with each piece of the body; the piece is valid until `take` returns. This is the
   * cheapest way to read it. The body must be read exactly once, in this or another way. An error
   * that `take` throws aborts the request.
   */
  receive(take: (piece: Uint8Array) => void): Promise<void>;
  /** Returns the body as a stream for slow readers. Leaving the loop aborts the request. */
  pieces(): AsyncIterable<Uint8Array>;
  /** Reads the body and discards it. */
  drop(): Promise<void>;
  /** Aborts the request. */
  end(): void;
}

/** SHA-256 of zero bytes. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const MAX_HEADER_BYTES = 32 * 1024;
/** A list page has at most 1000 keys of 1 KiB. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;
/** Shorter than the time for which servers keep idle connections. */
const KEEP_ALIVE_MS = 4000;
/** Even the last attempt waits this long for a response. */
const LEAST_STALL_MS = 1000;

export class Transport {
  /**
   * Key, with the prefix, of an object whose response was aborted because it was slower than
   * `Limits.rate`.
   */
  slow: string | undefined;
  readonly #address: S3Address;
  readonly #credentials: CredentialSource;
  readonly #signer: Signer;
  #pool: Promise<Pool> | undefined;
  #closed = false;

  constructor(address: S3Address, credentials: CredentialSource) {
    this.#address = address;
    this.#credentials = credentials;
    this.#signer = new Signer(address.region);
  }

  /**
   * Resolves with a response whose status is below 300.
   * @throws S3Fault, NodeError, or the reason of the signal
   */
  async send(request: S3Request): Promise<S3Response> {
    const { metrics } = request;
    const began = performance.now();
    metrics.requests += 1;
    try {
      const credentials = await this.#credentials.current();
      const response = await this.#dispatch(request, credentials);
      const { status, headers } = await response.head;
      if (status >= 300) await this.#refuse(request, credentials, response);
      const receive = (take: (piece: Uint8Array) => void) => this.#receive(response, take, request, began);
      return {
        status,
        headers,
        receive,
        pieces: () => this.#pieces(response, request, began),
        drop: () => receive(() => {}),
        end: () => response.end(),
      };
    } catch (error) {
      if (!isExpectedStatus(error)) metrics.errors += 1;
      metrics.time += performance.now() - began;
      throw this.#faultFrom(error, request);
    }
  }

  /** Returns the body as text, for responses that are not an object. */
  async text(request: S3Request): Promise<string> {
    return textOf(await this.send(request));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#pool)?.destroy();
  }

  /** Describes a request for messages: `PUT s3://bucket/key`. */
  describe({ method, key, query }: Pick<S3Request, "method" | "key" | "query">): string {
    const { bucket } = this.#address;
    const [first] = Object.keys(query ?? {});
    return `${method} s3://${bucket}/${key}${first === undefined ? "" : `?${first}`}`;
  }

  async #dispatch(request: S3Request, credentials: Credentials): Promise<IncomingResponse> {
    const { method, body, signal, metrics } = request;
    signal?.throwIfAborted();
    if (this.#closed) throw failure("STORE_CLOSED");
    const pool = await (this.#pool ??= this.#open());
    const { path, headers } = this.#sign(request, credentials);
    const length = body === undefined ? {} : { "content-length": String(body.payload.length) };
    const response = new IncomingResponse(signal);
    const options = {
      method,
      path,
      headers: { ...headers, ...length, "user-agent": agentVersion },
      body: body === undefined ? null : sendable(body.payload, metrics),
      headersTimeout: this.#stallOf(request),
      bodyTimeout: this.#stallOf(request),
      // Connections that have served HEAD are reused, too.
      reset: false,
    };
    pool.dispatch(options, response);
    return response;
  }

  /**
   * Signs a request with the hash of its body. The store refuses a body that was changed in
   * transit, with TLS and without.
   */
  #sign({ method, key, query = {}, headers, body }: S3Request, credentials: Credentials) {
    const { origin, root } = this.#address;
    const path = root + key.split("/").map(encoded).join("/");
    const unsigned = {
      method,
      host: origin.replace(/^https?:\/\//, ""),
      path: key === "" ? path.replace(/(?<=.)\/$/, "") : path,
      query,
      headers: headers ?? {},
      sha256: body?.sha256 ?? EMPTY,
    };
    const { search, headers: signed } = this.#signer.sign(unsigned, credentials);
    return { path: unsigned.path + search, headers: signed };
  }

  /** Returns the milliseconds for which a response may stall. */
  #stallOf({ end }: S3Request): number {
    const { stall } = this.#address.limits;
    return end === undefined ? stall : Math.min(stall, Math.max(LEAST_STALL_MS, end - performance.now()));
  }

  async #open(): Promise<Pool> {
    const { origin, limits } = this.#address;
    const { buildConnector, Pool } = await import("undici");
    return new Pool(origin, {
      connections: limits.connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: reusingBuffers(buildConnector, { timeout: limits.connect, allowH2: false }),
    });
  }

  async #refuse(request: S3Request, credentials: Credentials, response: IncomingResponse): Promise<never> {
    const { status, headers } = await response.head;
    // If the body breaks off, the status is enough.
    const text = await textOf(response).catch(() => "");
    const fault = faultOf(status, headers, text, this.describe(request));
    if (!STALE_CREDENTIALS.has(fault.code) || !(await this.#credentials.renewed(credentials))) throw fault;
    throw new S3Fault(fault.message, { code: "RenewedCredentials", cause: fault });
  }

  async #receive(
    response: IncomingResponse,
    take: (piece: Uint8Array) => void,
    request: S3Request,
    began: number,
  ): Promise<void> {
    const pace = this.#paceOf(request);
    let refused: unknown;
    try {
      await response.receive((piece) => {
        pace.came(piece);
        try {
          take(piece);
        } catch (error) {
          refused = error;
          throw error;
        }
      });
    } catch (error) {
      request.metrics.errors += 1;
      throw error === refused ? error : this.#faultFrom(error, request);
    } finally {
      request.metrics.time += performance.now() - began;
    }
  }

  async *#pieces(response: IncomingResponse, request: S3Request, began: number): AsyncGenerator<Uint8Array> {
    const pace = this.#paceOf(request);
    try {
      // The time that the reader takes does not count.
      yield* response.pieces(pace.came, pace.begin);
    } catch (error) {
      request.metrics.errors += 1;
      throw this.#faultFrom(error, request);
    } finally {
      request.metrics.time += performance.now() - began;
    }
  }

  /**
   * Measures the rate of a response. `came` throws when too few bytes have arrived since the last
   * `begin`.
   */
  #paceOf(request: S3Request) {
    const { rate } = this.#address.limits;
    const stall = this.#stallOf(request);
    let since = performance.now();
    let bytes = 0;
    const begin = () => {
      since = performance.now();
      bytes = 0;
    };
    const came = ({ length }: Uint8Array) => {
      request.metrics.received += length;
      bytes += length;
      const waited = performance.now() - since;
      if (waited < stall) return;
      if (bytes < (rate * waited) / 1000) {
        this.slow = request.key;
        throw new S3Fault(`${this.describe(request)}: the response is too slow`, { code: "TooSlow" });
      }
      begin();
    };
    return { begin, came };
  }

  #faultFrom(error: unknown, request: S3Request): unknown {
    if (this.#closed) return failure("STORE_CLOSED");
    if (request.signal?.aborted === true) return request.signal.reason;
    if (error instanceof S3Fault || NodeError.is(error)) return error;
    return connectionFault(error, this.describe(request));
  }
}

/** Describes a failed connection or a response that broke off. */
function connectionFault(error: unknown, request: string): S3Fault {
  const { code = "", message, errors } = error as NodeJS.ErrnoException & { errors?: readonly Error[] };
  const reason = message || errors?.[0]?.message || code;
  return new S3Fault(`${request}: ${reason}`, { code, cause: error });
}

function sendable(payload: Payload, metrics: RequestMetrics): Uint8Array | Readable {
  // Undici requests the next piece after the system has taken the previous one. It accepts async
  // iterables, although its types do not say so.
  if (!(payload instanceof Uint8Array)) return counting(reusedPieces(payload), metrics) as unknown as Readable;
  metrics.sent += payload.length;
  return payload;
}

async function* counting(pieces: AsyncIterable<Uint8Array>, metrics: RequestMetrics): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    metrics.sent += piece.length;
    yield piece;
  }
}

/** Whether the error says that an object exists or does not exist, so the request itself worked. */
const isExpectedStatus = (error: unknown): boolean =>
  error instanceof S3Fault && (error.status === 404 || error.status === 412);

async function textOf(response: Pick<S3Response, "receive">): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  await response.receive((piece) => {
    length += piece.length;
    if (length > MAX_TEXT_BYTES) throw new RangeError(`the response has more than ${MAX_TEXT_BYTES} bytes of text`);
    pieces.push(Buffer.from(piece));
  });
  return Buffer.concat(pieces).toString();
}
