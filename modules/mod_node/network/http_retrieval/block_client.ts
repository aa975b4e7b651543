/**
 * Fetches blocks from one gateway with requests of the trustless gateway specification, limited in
 * time and size.
 */
import { lookup as lookUp } from "node:dns";
import type { LookupFunction } from "node:net";
import type { CID } from "multiformats/cid";
import type { Dispatcher } from "undici";
import { agentVersion } from "../../util/agent_version.ts";
import { raceSignal } from "../../util/async/abortable.ts";
import { retryAfterMs } from "../../util/retry_after.ts";
import type { Endpoint } from "./endpoint.ts";

/** The outcome of a request. The bytes of a block are not verified yet. */
export type Outcome =
  | { readonly kind: "block"; readonly bytes: Uint8Array }
  /** The gateway has the block. */
  | { readonly kind: "present" }
  | { readonly kind: "absent" }
  /**
   * The request should be repeated after that many milliseconds, if the server specifies a delay.
   */
  | { readonly kind: "later"; readonly after: number | undefined }
  /** The gateway could not be reached, or did not respond in time. */
  | { readonly kind: "failed"; readonly reason: string }
  /** The response violates the specification. */
  | { readonly kind: "fault"; readonly reason: string };

/** Sends requests to one gateway. The methods never reject. */
export interface BlockClient {
  /** Requests the empty block to find out whether the server is a gateway. */
  probe(): Promise<Outcome>;
  get(cid: CID, signal: AbortSignal): Promise<Outcome>;
  has(cid: CID, signal: AbortSignal): Promise<Outcome>;
  /** Aborts pending requests. */
  close(): void;
}

export interface ClientOptions {
  /** Maximum size of a block in bytes. */
  readonly maxBlockSize: number;
  /** Maximum number of concurrent requests. */
  readonly workers: number;
  /** Whether to skip the verification of certificates. */
  readonly insecure: boolean;
  /** Whether an IP address may be connected to. */
  readonly mayDial: (ip: string) => boolean;
}

const EMPTY_BLOCK = "bafkqaaa";
const RAW = "application/vnd.ipld.raw";
const CONNECT_TIMEOUT_MS = 5000;
const HEAD_TIMEOUT_MS = 10_000;
/** Timeout for a response body that delivers no data. */
const BODY_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;
const MAX_HEADER_BYTES = 16 * 1024;
/**
 * Maximum number of bytes to read of a response without a block, so that its connection can be
 * reused.
 */
const MAX_DUMPED_BYTES = 4096;

export function blockClient(endpoint: Endpoint, options: ClientOptions): BlockClient {
  return new UndiciClient(endpoint, options);
}

class UndiciClient implements BlockClient {
  readonly #options: ClientOptions;
  readonly #pool: Promise<Dispatcher>;

  constructor(endpoint: Endpoint, options: ClientOptions) {
    this.#options = options;
    this.#pool = openPool(endpoint, options);
  }

  async probe(): Promise<Outcome> {
    const outcome = await this.#tryRequest("GET", EMPTY_BLOCK, AbortSignal.timeout(HEAD_TIMEOUT_MS));
    if (outcome.kind !== "block" || outcome.bytes.length === 0) return outcome;
    return { kind: "fault", reason: "it sends bytes for the empty block" };
  }

  get(cid: CID, signal: AbortSignal): Promise<Outcome> {
    return this.#tryRequest("GET", cid.toString(), signal);
  }

  has(cid: CID, signal: AbortSignal): Promise<Outcome> {
    return this.#tryRequest("HEAD", cid.toString(), signal);
  }

  close(): void {
    void this.#pool.then((pool) => pool.destroy()).catch(() => {});
  }

  async #tryRequest(method: "GET" | "HEAD", cid: string, signal: AbortSignal): Promise<Outcome> {
    try {
      // undici never settles a request for which an HTTP/2 server provides no stream.
      return await raceSignal(this.#request(method, cid, signal), signal);
    } catch (error) {
      return { kind: "failed", reason: reasonOf(error) };
    }
  }

  async #request(method: "GET" | "HEAD", cid: string, signal: AbortSignal): Promise<Outcome> {
    const pool = await this.#pool;
    const { statusCode, headers, body } = await pool.request({
      method,
      path: `/ipfs/${cid}?format=raw`,
      headers: { accept: RAW, "user-agent": agentVersion },
      headersTimeout: HEAD_TIMEOUT_MS,
      bodyTimeout: BODY_TIMEOUT_MS,
      signal,
    });
    if (statusCode === 200 && method === "GET") return readBlock(body, headers, this.#options.maxBlockSize);
    await body.dump({ limit: MAX_DUMPED_BYTES }).catch(() => {});
    if (statusCode === 200 || statusCode === 204) return { kind: "present" };
    if (statusCode === 429 || statusCode >= 500) return { kind: "later", after: retryAfterMs(headers["retry-after"]) };
    return { kind: "absent" };
  }
}

async function readBlock(
  body: Dispatcher.ResponseData["body"],
  headers: Dispatcher.ResponseData["headers"],
  maxBytes: number,
): Promise<Outcome> {
  const tooLarge: Outcome = { kind: "fault", reason: `it sends more than the ${maxBytes} bytes of a block` };
  const announced = Number(headers["content-length"] ?? 0);
  if (announced > maxBytes) {
    body.on("error", () => {}).destroy();
    return tooLarge;
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early aborts the request.
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    length += piece.length;
    if (length > maxBytes) return tooLarge;
    pieces.push(piece);
  }
  return { kind: "block", bytes: pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, length) };
}

async function openPool({ origin, ip, host }: Endpoint, options: ClientOptions): Promise<Dispatcher> {
  const { Pool } = await import("undici");
  const { workers, insecure, mayDial } = options;
  // An IP address needs no DNS lookup.
  const literal = ip ?? host;
  return new Pool(origin, {
    connections: workers,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    allowH2: true,
    connect: {
      preferH2: true,
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: !insecure,
      lookup: guarded(literal, mayDial),
    },
  });
}

/**
 * Returns a lookup function that checks the addresses it returns. A separate check before
 * connecting would not suffice, because the name may resolve differently the next time.
 */
function guarded(host: string, mayDial: (ip: string) => boolean): LookupFunction {
  return (_name, { all, ...options }, callback) => {
    lookUp(host, { ...options, all: true }, (error, found) => {
      const allowed = error === null ? found.filter(({ address }) => mayDial(address)) : [];
      const [first] = allowed;
      if (error !== null) callback(error, "");
      else if (first === undefined) callback(new Error(`${host} has no address that may be dialled`), "");
      else if (all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return message === "" && cause instanceof Error ? cause.message : message || String(error);
}
