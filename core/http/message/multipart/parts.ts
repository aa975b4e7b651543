import type { MultipartLimits, MultipartPart } from "../../../types.ts";
import { parseParameters } from "./disposition.ts";
import { type BodyParser, OpeningParser } from "./opening_parser.ts";
import { cutMultipart, invalidMultipart, type PartHeaders, type Piece } from "./parser.ts";

/**
 * A source that can also be read so that each piece is valid only until the next one is requested.
 */
export interface PassingSource {
  passing(): AsyncIterable<Buffer>;
}

/**
 * Maximum number of bytes read after the closing boundary, so that the connection can be used
 * again.
 */
const MAX_EPILOGUE_BYTES = 64 * 1024;

/**
 * Yields the parts of a multipart body one after the other, parsed on demand: at most one chunk of
 * the source is in memory, whatever the size of a part. Nothing is written to disk. Part bodies
 * have the bytes from the wire; Content-Transfer-Encoding is not decoded.
 *
 * Requesting the next part skips the rest of the current one, unless its `text()` or `bytes()` is
 * in progress, which is awaited. Leaving the loop early stops reading the source.
 *
 * Throws MULTIPART_INVALID when the body is not multipart, is cut off or exceeds a limit on parts
 * or their headers; BODY_TOO_LARGE for `limits.part_bytes`; the signal's reason when it is aborted;
 * and any error of the source.
 */
export async function* readParts(
  source: AsyncIterable<Buffer> | PassingSource,
  contentType: string,
  limits: MultipartLimits = {},
  signal?: AbortSignal,
): AsyncGenerator<MultipartPart, void, undefined> {
  const reader = new PartReader(source, new OpeningParser(boundaryOf(contentType), limits), signal);
  try {
    for (let part = await reader.nextPart(); part !== undefined; part = await reader.nextPart()) yield part;
  } finally {
    await reader.close();
  }
}

/** Pulls chunks from the source through the parser when pieces are requested. */
class PartReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #parser: BodyParser;
  readonly #signal: AbortSignal | undefined;
  #current: Part | undefined;
  #pulling: Promise<void> | undefined;
  /**
   * Creates the error to throw. It is created only when needed, because stacks cost time and most
   * bodies have no error.
   */
  #failure: (() => unknown) | undefined;
  #interrupt: (reason: unknown) => void = () => {};
  #reading = false;
  #epilogue = 0;
  #ended = false;
  /** Whether pieces must be copied for readers that may keep them. */
  readonly isPassing: boolean;

  constructor(source: AsyncIterable<Buffer> | PassingSource, parser: BodyParser, signal: AbortSignal | undefined) {
    this.isPassing = "passing" in source;
    this.#source = ("passing" in source ? source.passing() : source)[Symbol.asyncIterator]();
    this.#parser = parser;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = () => this.#interrupt(this.#signal?.reason);

  async nextPart(): Promise<Part | undefined> {
    await this.#current?.collected;
    this.#current = undefined;
    for (;;) {
      const piece = await this.#take();
      if (piece === undefined) return undefined;
      if (piece.kind !== "part") continue;
      this.#current = new Part(this, piece.headers);
      return this.#current;
    }
  }

  /** The next bytes of a part; undefined at its end. */
  async nextBytes(part: Part): Promise<Buffer | undefined> {
    const piece = await this.#take(part);
    return piece?.kind === "data" ? piece.bytes : undefined;
  }

  /** Stops reading. Parts that a handler still has fail from now on. */
  async close(): Promise<void> {
    this.#current = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#failure ??= () => new TypeError("The multipart body is no longer read");
    if (this.#ended) return;
    const ended = this.#source.return?.();
    // A source that waits for its next chunk may not notice for a long time, so nobody waits for
    // it.
    if (this.#reading) ended?.catch(() => {});
    else await ended;
  }

  /**
   * Takes the next piece, which belongs to `part` when one is given; undefined at the end of the
   * body.
   */
  async #take(part?: Part): Promise<Piece | undefined> {
    for (;;) {
      if (part !== this.#current) throw new TypeError("This part was skipped: read it before asking for the next one");
      const piece = this.#parser.pieces.shift();
      if (piece !== undefined) return piece;
      if (this.#failure !== undefined) throw this.#failure();
      if (this.#ended) return undefined;
      this.#pulling ??= this.#pull();
      await this.#pulling;
    }
  }

  async #pull(): Promise<void> {
    try {
      const { done, value } = await this.#read();
      if (done === true) {
        this.#ended = true;
        if (!this.#parser.complete) throw cutMultipart();
      } else if (!this.#parser.complete) {
        this.#parser.feed(value);
      } else {
        this.#epilogue += value.length;
        if (this.#epilogue <= MAX_EPILOGUE_BYTES) return;
        this.#ended = true;
        await this.#source.return?.();
      }
    } catch (thrown) {
      this.#failure ??= () => thrown;
    } finally {
      this.#pulling = undefined;
    }
  }

  /** The next chunk; rejects at once when the signal is aborted. */
  #read(): Promise<IteratorResult<Buffer, unknown>> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#signal?.aborted) {
        reject(this.#signal.reason);
        return;
      }
      this.#reading = true;
      this.#source.next().then(
        (result) => {
          this.#reading = false;
          resolve(result);
        },
        (reason: unknown) => {
          this.#reading = false;
          reject(reason);
        },
      );
    });
  }
}

/** One part as handlers see it. */
class Part implements MultipartPart {
  readonly headers: PartHeaders;
  readonly name: string | undefined;
  readonly filename: string | undefined;
  /** Settles when `text()` or `bytes()` has succeeded or failed. */
  collected: Promise<unknown> | undefined;
  readonly #reader: PartReader;
  #taken = false;

  constructor(reader: PartReader, headers: PartHeaders) {
    this.#reader = reader;
    this.headers = headers;
    const parameters = parseParameters(headers.content_disposition ?? "");
    this.name = parameters.get("name");
    this.filename = parameters.get("filename");
  }

  get body(): AsyncIterable<Buffer> {
    return this.#read(this.#reader.isPassing);
  }

  get passing(): AsyncIterable<Buffer> {
    return this.#read(false);
  }

  async text(): Promise<string> {
    return (await this.bytes()).toString("utf8");
  }

  bytes(): Promise<Buffer> {
    const bytes = collect(this.body);
    this.collected = bytes.catch(() => {});
    return bytes;
  }

  async *#read(isCopied: boolean): AsyncGenerator<Buffer, void, undefined> {
    if (this.#taken) throw new TypeError("The body of this part has been read already: it can be read once");
    this.#taken = true;
    for (;;) {
      const bytes = await this.#reader.nextBytes(this);
      if (bytes === undefined) return;
      yield isCopied ? Buffer.from(bytes) : bytes;
    }
  }
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

function boundaryOf(contentType: string): string {
  if (!/^multipart\//i.test(contentType)) throw invalidMultipart("its Content-Type is not multipart");
  const boundary = parseParameters(contentType).get("boundary") ?? "";
  if (!/^[\x20-\x7e]{1,200}$/.test(boundary)) throw invalidMultipart("its Content-Type names no usable boundary");
  return boundary;
}
