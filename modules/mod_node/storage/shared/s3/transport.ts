/** One request to an S3 store: signed, sent, its answer read; repeated by others. */
import type { Readable } from "node:stream";
import type { Pool } from "undici";
import { agentVersion } from "../../../util/agent_version.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { reusingBuffers } from "./connections.ts";
import type { CredentialSource, Credentials } from "./credentials.ts";
import { faultOf, S3Fault, STALE_CREDENTIALS } from "./faults.ts";
import type { RequestFigures } from "./figures.ts";
import { IncomingAnswer } from "./incoming_answer.ts";
import type { Payload } from "./objects.ts";
import { lentPieces } from "./payload.ts";
import type { Place } from "./settings.ts";
import { encoded, Signer } from "./signing.ts";

export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** With the prefix; empty for the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly payload: Payload; readonly sha256: string } | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Of a call that has failed before: by `performance.now()`. A store that stands still is not waited for beyond, so that the call ends
   * soon after.
   */
  readonly end?: number | undefined;
  readonly figures: RequestFigures;
}

export interface S3Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /**
   * Calls `take` with each piece of the body, which is good until that returns: the cheapest way to read it. The body must be read in this
   * or another way, once. What `take` throws ends the request.
   */
  receive(take: (piece: Uint8Array) => void): Promise<void>;
  /** The same for those who take their time; leaving the loop ends the request. */
  pieces(): AsyncIterable<Uint8Array>;
  /** Reads it, and forgets it. */
  drop(): Promise<void>;
  /** Ends the request. */
  end(): void;
}

/** SHA-256 of nothing. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const MAX_HEADER_BYTES = 32 * 1024;
/** A page of a list has at most 1000 keys of 1 KiB. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;
/** Shorter than servers keep a connection that nobody uses. */
const KEEP_ALIVE_MS = 4000;
/** Even the last attempt waits so many milliseconds for an answer. */
const LEAST_STALL_MS = 1000;

export class Transport {
  /** Key of an object, with the prefix, whose answer was given up because it came more slowly than `Limits.rate`. */
  slow: string | undefined;
  readonly #place: Place;
  readonly #credentials: CredentialSource;
  readonly #signer: Signer;
  #pool: Promise<Pool> | undefined;
  #closed = false;

  constructor(place: Place, credentials: CredentialSource) {
    this.#place = place;
    this.#credentials = credentials;
    this.#signer = new Signer(place.region);
  }

  /** The answer, where its status is below 300. @throws S3Fault, NodeError, or the reason of the signal */
  async send(request: S3Request): Promise<S3Answer> {
    const { figures } = request;
    const began = performance.now();
    figures.requests += 1;
    try {
      const credentials = await this.#credentials.current();
      const answer = await this.#dispatch(request, credentials);
      const { status, headers } = await answer.head;
      if (status >= 300) await this.#refuse(request, credentials, answer);
      const receive = (take: (piece: Uint8Array) => void) => this.#receive(answer, take, request, began);
      return {
        status,
        headers,
        receive,
        pieces: () => this.#pieces(answer, request, began),
        drop: () => receive(() => {}),
        end: () => answer.end(),
      };
    } catch (error) {
      if (!isAnswer(error)) figures.errors += 1;
      figures.time += performance.now() - began;
      throw this.#faultFrom(error, request);
    }
  }

  /** The body as text; for answers that are none of an object. */
  async text(request: S3Request): Promise<string> {
    return textOf(await this.send(request));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#pool)?.destroy();
  }

  /** `PUT s3://bucket/key`, for messages. */
  describe({ method, key, query }: Pick<S3Request, "method" | "key" | "query">): string {
    const { bucket } = this.#place;
    const [first] = Object.keys(query ?? {});
    return `${method} s3://${bucket}/${key}${first === undefined ? "" : `?${first}`}`;
  }

  async #dispatch(request: S3Request, credentials: Credentials): Promise<IncomingAnswer> {
    const { method, body, signal, figures } = request;
    signal?.throwIfAborted();
    if (this.#closed) throw failure("STORE_CLOSED");
    const pool = await (this.#pool ??= this.#open());
    const { path, headers } = this.#sign(request, credentials);
    const length = body === undefined ? {} : { "content-length": String(body.payload.length) };
    const answer = new IncomingAnswer(signal);
    const asked = {
      method,
      path,
      headers: { ...headers, ...length, "user-agent": agentVersion },
      body: body === undefined ? null : sendable(body.payload, figures),
      headersTimeout: this.#stallOf(request),
      bodyTimeout: this.#stallOf(request),
      // A connection that has served HEAD is kept, too.
      reset: false,
    };
    pool.dispatch(asked, answer);
    return answer;
  }

  /** The hash of what is sent is signed: the store refuses what was changed on its way, with TLS and without. */
  #sign({ method, key, query = {}, headers, body }: S3Request, credentials: Credentials) {
    const { origin, root } = this.#place;
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

  /** Milliseconds for which an answer may stand still. */
  #stallOf({ end }: S3Request): number {
    const { stall } = this.#place.limits;
    return end === undefined ? stall : Math.min(stall, Math.max(LEAST_STALL_MS, end - performance.now()));
  }

  async #open(): Promise<Pool> {
    const { origin, limits } = this.#place;
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

  async #refuse(request: S3Request, credentials: Credentials, answer: IncomingAnswer): Promise<never> {
    const { status, headers } = await answer.head;
    // Of an answer that breaks off, the status is enough.
    const text = await textOf(answer).catch(() => "");
    const fault = faultOf(status, headers, text, this.describe(request));
    if (!STALE_CREDENTIALS.has(fault.code) || !(await this.#credentials.renewed(credentials))) throw fault;
    throw new S3Fault(fault.message, { code: "RenewedCredentials", cause: fault });
  }

  async #receive(
    answer: IncomingAnswer,
    take: (piece: Uint8Array) => void,
    request: S3Request,
    began: number,
  ): Promise<void> {
    const pace = this.#paceOf(request);
    let refused: unknown;
    try {
      await answer.receive((piece) => {
        pace.came(piece);
        try {
          take(piece);
        } catch (error) {
          refused = error;
          throw error;
        }
      });
    } catch (error) {
      request.figures.errors += 1;
      throw error === refused ? error : this.#faultFrom(error, request);
    } finally {
      request.figures.time += performance.now() - began;
    }
  }

  async *#pieces(answer: IncomingAnswer, request: S3Request, began: number): AsyncGenerator<Uint8Array> {
    const pace = this.#paceOf(request);
    try {
      // What the reader takes its time for does not count.
      yield* answer.pieces(pace.came, pace.begin);
    } catch (error) {
      request.figures.errors += 1;
      throw this.#faultFrom(error, request);
    } finally {
      request.figures.time += performance.now() - began;
    }
  }

  /** Counts what comes of an answer. `came` throws where that is too little for the time since the last `begin`. */
  #paceOf(request: S3Request) {
    const { rate } = this.#place.limits;
    const stall = this.#stallOf(request);
    let [since, bytes] = [performance.now(), 0];
    const begin = () => {
      [since, bytes] = [performance.now(), 0];
    };
    const came = ({ length }: Uint8Array) => {
      request.figures.received += length;
      bytes += length;
      const waited = performance.now() - since;
      if (waited < stall) return;
      if (bytes < (rate * waited) / 1000) {
        this.slow = request.key;
        throw new S3Fault(`${this.describe(request)}: its answer comes too slowly`, { code: "TooSlow" });
      }
      begin();
    };
    return { begin, came };
  }

  #faultFrom(error: unknown, request: S3Request): unknown {
    if (this.#closed) return failure("STORE_CLOSED");
    if (request.signal?.aborted === true) return request.signal.reason;
    if (error instanceof S3Fault || NodeError.is(error)) return error;
    return noAnswer(error, this.describe(request));
  }
}

/** A connection that failed, or an answer that broke off. */
function noAnswer(error: unknown, request: string): S3Fault {
  const { code = "", message, errors } = error as NodeJS.ErrnoException & { errors?: readonly Error[] };
  const reason = message || errors?.[0]?.message || code;
  return new S3Fault(`${request}: ${reason}`, { code, cause: error });
}

function sendable(payload: Payload, figures: RequestFigures): Uint8Array | Readable {
  // Undici asks for the next piece when the system has taken the one before; its types do not know that it takes what is iterable.
  if (!(payload instanceof Uint8Array)) return counting(lentPieces(payload), figures) as unknown as Readable;
  figures.sent += payload.length;
  return payload;
}

async function* counting(pieces: AsyncIterable<Uint8Array>, figures: RequestFigures): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    figures.sent += piece.length;
    yield piece;
  }
}

/** That an object is not there, or is there already, was asked. */
const isAnswer = (error: unknown): boolean =>
  error instanceof S3Fault && (error.status === 404 || error.status === 412);

async function textOf(answer: Pick<S3Answer, "receive">): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  await answer.receive((piece) => {
    length += piece.length;
    if (length > MAX_TEXT_BYTES) throw new RangeError(`it answers with more than ${MAX_TEXT_BYTES} bytes of text`);
    pieces.push(Buffer.from(piece));
  });
  return Buffer.concat(pieces).toString();
}
