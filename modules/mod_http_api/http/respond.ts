/** Turns the result of a command into an HTTP response. */
import { BlockLeases, retryAfter, TimeSlices } from "modhost/node";
import type { HttpResponse, PooledBody, ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { type AnyCall, Bytes, type BytesOptions, Listing } from "../rpc/command.ts";
import { type Encoder, failureOf } from "../rpc/encodings.ts";
import type { Level, LevelTraits } from "../rpc/levels.ts";
import { ReadAhead, type ReadAheadOptions } from "./read_ahead.ts";
import type { ResponseCache } from "./response_cache.ts";

const streamError = "X-Stream-Error";
const announced = "X-Stream-Output, X-Chunked-Output, X-Content-Length";

/**
 * Returns the headers of every response to a call that passed the access checks and argument
 * parsing. Anyone may have added the content, so browsers must not guess its type.
 */
export function serverHeaders(configured: ResponseHeaders, { program, version }: LevelTraits): ResponseHeaders {
  return { x_content_type_options: "nosniff", ...configured, server: `${program}/${version}` };
}

/** Returns a plain text error as written by Go's `http.Error`. */
export function plainError(status: number, message: string, headers: ResponseHeaders = {}): ResponseFields {
  const own = { content_type: "text/plain; charset=utf-8", x_content_type_options: "nosniff" };
  return { status_code: status, headers: { ...headers, ...own }, body: `${message}\n` };
}

export interface Running {
  readonly call: AnyCall;
  readonly level: Level;
  /** Content type of raw bytes. */
  readonly bytesType: string;
  readonly encoder: Encoder;
  readonly headers: ResponseHeaders;
  readonly response: HttpResponse;
  readonly cache: ResponseCache;
  /** Whether to send the headers before the first value. */
  readonly eager: boolean;
  /** Set for commands that respond while they read the request body. */
  readonly ahead?: ReadAheadOptions | undefined;
  /** Called with an error of the command, before or during the response body. */
  failed(thrown: unknown): void;
  /** Called once, when the command has finished. */
  over(): void;
}

/** Runs the command and returns the response as soon as its form is known. Never rejects. */
export async function respond(running: Running, run: () => unknown): Promise<ResponseFields> {
  try {
    const result = await run();
    if (result instanceof Bytes) return bytesResponse(running, result);
    if (result instanceof Listing) return await listingResponse(running, result);
    if (isAsyncIterable(result)) return await streamResponse(running, result);
    const responseFields = result === undefined ? emptyResponse(running) : valueResponse(running, result);
    running.over();
    return responseFields;
  } catch (thrown) {
    running.failed(thrown);
    running.over();
    return failureResponse(running, thrown);
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

interface Wire {
  readonly status?: number;
  readonly headers: ResponseHeaders;
  readonly body: NonNullable<ResponseFields["body"]>;
  /**
   * Called after the body. Returns the message of an error that occurred after the headers were
   * sent.
   */
  late?(): string | undefined;
}

/** Every response of a command announces the error trailer, and is therefore chunked. */
function responseFields(
  { headers, response }: Running,
  { status = 200, headers: own, body, late }: Wire,
): ResponseFields {
  response.trailer_names = [streamError];
  return {
    status_code: status,
    headers: {
      ...headers,
      access_control_allow_headers: announced,
      access_control_expose_headers: announced,
      ...own,
    },
    body,
    trailers: () => {
      const message = late?.();
      return message === undefined ? {} : { [streamError]: headerText(message) };
    },
  };
}

function failureResponse(running: Running, thrown: unknown): ResponseFields {
  const failure = failureOf(thrown, running.level);
  const { encoder } = running;
  const wait = retryAfter(thrown);
  const headers = { content_type: encoder.failureType, ...(wait === undefined ? {} : { retry_after: String(wait) }) };
  const status = wait === undefined ? (failure.code === 1 ? 400 : 500) : 503;
  return responseFields(running, { status, headers, body: encoder.failure(failure) });
}

function valueResponse(running: Running, value: unknown): ResponseFields {
  const { encoder, call } = running;
  const headers = { content_type: encoder.type };
  try {
    return responseFields(running, { headers, body: encoder.value(value, call, undefined) });
  } catch (thrown) {
    // The value cannot be encoded. go-ipfs has already sent the headers at that point, so the error
    // goes into the trailer.
    running.failed(thrown);
    return responseFields(running, { headers, body: "", late: () => failureOf(thrown, running.level).message });
  }
}

/**
 * Number of list items to collect before the response starts. An error among them still gets its
 * own status.
 */
const listedAtOnce = 4096;

async function listingResponse(running: Running, listing: Listing<unknown>): Promise<ResponseFields> {
  const { encoder, cache } = running;
  if (encoder.listing === undefined)
    return wholeResponse(running, listing, (await Array.fromAsync(listing.pages)).flat());
  const headers = { content_type: encoder.type };
  const known = listing.name === undefined ? undefined : cache.find(listing.name);
  if (known !== undefined) return streamed(running, headers, continued([...known]), asIs);
  let count = 0;
  const counted = async function* () {
    const slices = new TimeSlices();
    for await (const page of listing.pages) {
      count += page.length;
      yield page;
      const turn = slices.due();
      if (turn !== undefined) await turn;
    }
  };
  const texts = encoder.listing(listing, counted());
  const pieces = (listing.name === undefined ? texts : cache.storing(listing.name, texts, () => count > 0))[
    Symbol.asyncIterator
  ]();
  // Collects the text rather than the items, which take several objects each.
  const first: (string | Buffer)[] = [];
  let next = await pieces.next();
  for (; next.done !== true && count < listedAtOnce; next = await pieces.next()) first.push(next.value);
  if (next.done === true && count === 0) return wholeResponse(running, listing, []);
  const rest = next.done === true ? undefined : pieces;
  return streamed(running, headers, continued(next.done === true ? first : [...first, next.value], rest), asIs);
}

const asIs = <T>(piece: T): T => piece;

function wholeResponse(running: Running, listing: Listing<unknown>, items: readonly unknown[]): ResponseFields {
  const whole = valueResponse(running, listing.whole(items));
  running.over();
  return whole;
}

async function* continued<T>(first: T[], rest?: AsyncIterator<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* first.splice(0);
    for (let next = await rest?.next(); next?.done === false; next = await rest?.next()) yield next.value;
  } finally {
    await rest?.return?.();
  }
}

function emptyResponse(running: Running): ResponseFields {
  return responseFields(running, { headers: { content_type: running.encoder.type, x_chunked_output: "1" }, body: "" });
}

function bytesResponse(running: Running, { source, options: { length, release } }: Bytes): ResponseFields {
  const headers: ResponseHeaders = { content_type: running.bytesType, x_stream_output: "1" };
  if (length !== undefined) headers.x_content_length = String(length);
  if (release === undefined) return streamed(running, headers, source[Symbol.asyncIterator](), asIs);
  const { response } = running;
  const { on_destroy } = response;
  const leases = new BlockLeases({ release });
  response.on_destroy = () => {
    on_destroy?.();
    leases.end();
  };
  return streamed(running, headers, leases.pieces(source), asIs, { release: (piece) => leases.release(piece) });
}

async function streamResponse(running: Running, values: AsyncIterable<unknown>): Promise<ResponseFields> {
  const { encoder, call, eager, ahead } = running;
  const iterator = values[Symbol.asyncIterator]();
  // An error before the first value still gets its own status.
  const first = eager ? undefined : await iterator.next();
  const headers = { content_type: encoder.type, x_chunked_output: "1" };
  const write = (value: unknown, previous: unknown) => encoder.value(value, call, previous);
  if (ahead === undefined || first?.done === true) return streamed(running, headers, iterator, write, { first });
  return streamed(running, headers, new ReadAhead(encoded(iterator, write, first), ahead), (bytes) => bytes);
}

/** Encodes the values of a stream. `first` is a value that was already read from it. */
async function* encoded<T>(
  source: AsyncIterator<T>,
  write: (value: T, previous: T | undefined) => string | Uint8Array,
  first: IteratorResult<T> | undefined,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  let previous: T | undefined;
  try {
    for (let next = first ?? (await source.next()); next.done !== true; next = await source.next()) {
      yield write(next.value, previous);
      previous = next.value;
    }
  } finally {
    await source.return?.();
  }
}

interface Streaming<T> {
  /** A result that was already read from the source. */
  readonly first?: IteratorResult<T> | undefined;
  /** Called with each chunk once it is sent, if chunks are sent unchanged. */
  readonly release?: BytesOptions["release"];
}

/** Streams the response body. An error on the way ends it and is reported in the trailer. */
function streamed<T>(
  running: Running,
  headers: ResponseHeaders,
  source: AsyncIterator<T>,
  write: (value: T, previous: T | undefined) => string | Uint8Array,
  { first, release }: Streaming<T> = {},
): ResponseFields {
  let late: string | undefined;
  let waiting = first;
  let previous: T | undefined;
  const slices = new TimeSlices();
  const end = async () => {
    running.over();
    await source.return?.();
    return { done: true, value: undefined } as const;
  };
  // This is not a generator: `return` on a generator that never started runs no `finally`, so
  // `over` would not be called.
  const body: AsyncIterableIterator<string | Uint8Array> & Partial<PooledBody> = {
    [Symbol.asyncIterator]: () => body,
    async next() {
      try {
        const turn = slices.due();
        if (turn !== undefined) await turn;
        const result = waiting ?? (await source.next());
        waiting = undefined;
        if (result.done === true) return await end();
        const piece = write(result.value, previous);
        previous = result.value;
        return { done: false, value: piece };
      } catch (thrown) {
        late = failureOf(thrown, running.level).message;
        running.failed(thrown);
        return await end().catch(() => ({ done: true, value: undefined }) as const);
      }
    },
    return: end,
    ...(release && { release }),
  };
  return responseFields(running, { headers, body, late: () => late });
}

/**
 * Returns the message as a header value: a single line, as UTF-8 bytes in latin1 characters, since
 * headers take latin1.
 */
function headerText(message: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
  const line = message.replace(/[\x00-\x1f\x7f]/g, " ").trim();
  return Buffer.from(line, "utf8").toString("latin1");
}
