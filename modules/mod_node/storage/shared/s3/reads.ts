/**
 * Reads objects of an S3 store: ranges, whole bodies that survive a broken connection, and facts
 * that need no reading.
 */
import { createHash } from "node:crypto";
import { failure, type NodeError } from "../../../util/errors.ts";
import { S3Fault } from "./faults.ts";
import type { ByteRange, Interruptible, ObjectFacts, ObjectStream, ReadOptions, StreamOptions } from "./objects.ts";
import { type Attempt, hex, isStatus, type Requests } from "./requests.ts";
import type { S3Address } from "./settings.ts";
import type { S3Response } from "./transport.ts";

/**
 * The header with the SHA-256 that the writer of an object computed. Stores do not agree on what an
 * etag means.
 */
export const SHA256_HEADER = "x-amz-meta-sha256";

/** An open response whose head matches the request. */
interface Opened {
  readonly facts: ObjectFacts;
  readonly response: S3Response;
}

/**
 * Waits before a read that broke off after `at` bytes is continued; throws when it must not be
 * continued.
 */
type Persist = (error: unknown, at: number) => Promise<void>;

/**
 * Bytes that a probe reads of an object whose response was too slow, to see whether the store is
 * faster now.
 */
const PROBE_BYTES = 16 * 1024;

export class Reads {
  readonly #address: S3Address;
  readonly #requests: Requests;
  constructor(address: S3Address, requests: Requests) {
    this.#address = address;
    this.#requests = requests;
  }

  async read(key: string, range: ByteRange, options: ReadOptions): Promise<Uint8Array | undefined> {
    const { start, length } = range;
    const { into = Buffer.allocUnsafeSlow(length), onProgress } = options;
    if (into.length < length) throw new RangeError(`${length} bytes do not fit into ${into.length}`);
    if (length === 0) return (await this.head(key, options)) === undefined ? undefined : into.subarray(0, 0);
    let opened = await this.#openFirst(key, start, length, options);
    if (opened === undefined) return undefined;
    const persist = this.#persistence(0, options);
    let at = 0;
    const take = (piece: Uint8Array) => {
      if (at + piece.length > length) throw this.#broken(key, "the response is longer than requested");
      into.set(piece, at);
      at += piece.length;
      onProgress?.(at);
    };
    const { etag } = opened.facts;
    for (;;) {
      try {
        await opened.response.receive(take);
        if (at === length) return into.subarray(0, length);
        throw this.#broken(key, `the response ends ${length - at} bytes too early`);
      } catch (error) {
        await persist(error, at);
      }
      opened = await this.#openRest(key, start + at, start + length, etag, options);
    }
  }

  async stream(key: string, options: StreamOptions): Promise<ObjectStream | undefined> {
    const { range } = options;
    if (range?.length === 0) {
      const facts = await this.head(key, options);
      return facts && { facts, body: nothing() };
    }
    const opened = await this.#openFirst(key, range?.start ?? 0, range?.length, options);
    if (opened === undefined) return undefined;
    const start = range?.start ?? 0;
    const end = start + (range?.length ?? opened.facts.bytes);
    return { facts: opened.facts, body: this.#follow(opened, start, end, options) };
  }

  /** Makes a request that shows whether objects can be read. */
  async probe(options: Interruptible): Promise<void> {
    const { transport } = this.#requests;
    if (transport.slow === undefined) return void (await this.head("probe", options));
    const found = await this.stream(transport.slow.slice(this.#address.prefix.length), options);
    let left = PROBE_BYTES;
    for await (const { length } of found?.body ?? []) {
      left -= length;
      if (left <= 0) break;
    }
    transport.slow = undefined;
  }

  head(key: string, options: Interruptible): Promise<ObjectFacts | undefined> {
    return this.#requests.run("head", options, async (attempt) => {
      const response = await attempt.find({ method: "HEAD", key: this.#address.prefix + key });
      await response?.drop();
      return response && this.#factsOf(key, response, lengthOf(response));
    });
  }

  /** Compares an object with the data to be written; undefined when the object does not exist. */
  async compare(
    attempt: Attempt,
    key: string,
    bytes: number,
    sha256: string,
  ): Promise<"same" | "different" | undefined> {
    const response = await attempt.find({ method: "HEAD", key: this.#address.prefix + key }, "head");
    if (response === undefined) return undefined;
    await response.drop();
    if (lengthOf(response) !== bytes) return "different";
    const known = response.headers[SHA256_HEADER];
    if (known !== undefined) return known === sha256 ? "same" : "different";
    // Another program wrote the object without the header.
    const found = bytes === 0 ? undefined : await this.#open(attempt, key, 0, undefined);
    const hash = createHash("sha256");
    await found?.response.receive((piece) => void hash.update(piece));
    return hex(hash.digest()) === sha256 ? "same" : "different";
  }

  /**
   * Opens an object from `start` on; without a length, to its end. With `etag`, only the object
   * with this etag.
   */
  async #open(
    attempt: Attempt,
    key: string,
    start: number,
    length: number | undefined,
    etag?: string,
  ): Promise<Opened | undefined> {
    const whole = start === 0 && length === undefined;
    const request = {
      method: "GET",
      key: this.#address.prefix + key,
      headers: {
        ...(whole ? {} : { range: `bytes=${start}-${length === undefined ? "" : start + length - 1}` }),
        ...(etag === undefined ? {} : { "if-match": etag }),
      },
    } as const;
    const response = await attempt.find(request, "get").catch(async (error: unknown) => {
      if (isStatus(error, 412))
        throw failure("OBJECT_STORE_FAULT", { reason: `${this.#address.name}${key} was changed while it was read` });
      if (!isStatus(error, 416) || length === undefined) throw error;
      const found = await attempt.find({ method: "HEAD", key: request.key }, "head");
      await found?.drop();
      if (found === undefined) return undefined;
      throw tooShort(this.#address.name + key, lengthOf(found), { start, length });
    });
    if (response === undefined) return undefined;
    const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers["content-range"] ?? "") ?? [];
    const bytes = response.status === 206 ? Number(total) : lengthOf(response);
    const from = response.status === 206 ? Number(first) : 0;
    const end = response.status === 206 ? Number(last) + 1 : bytes;
    if (from !== start || !(end <= bytes)) {
      response.end();
      throw failure("OBJECT_STORE_FAULT", {
        reason: `${this.#requests.transport.describe(request)}: the response is not the requested range`,
      });
    }
    if (length !== undefined && end !== start + length) {
      response.end();
      if (end < start + length) throw tooShort(this.#address.name + key, bytes, { start, length });
      throw failure("OBJECT_STORE_FAULT", {
        reason: `${this.#requests.transport.describe(request)}: the response is longer than requested`,
      });
    }
    return { facts: this.#factsOf(key, response, bytes), response };
  }

  #openFirst(
    key: string,
    start: number,
    length: number | undefined,
    options: Interruptible,
  ): Promise<Opened | undefined> {
    return this.#requests.run("get", options, (attempt) => this.#open(attempt, key, start, length));
  }

  /** Opens the rest of an object that was opened before. */
  async #openRest(key: string, at: number, end: number, etag: string, options: Interruptible): Promise<Opened> {
    const rest = await this.#requests.run("get", options, (attempt) => this.#open(attempt, key, at, end - at, etag));
    if (rest === undefined)
      throw failure("OBJECT_STORE_FAULT", { reason: `${this.#address.name}${key} was removed while it was read` });
    return rest;
  }

  #persistence(start: number, options: Interruptible): Persist {
    const { stall, rate } = this.#address.limits;
    let failures = 0;
    let failedAt = start;
    let givenUp = 0;
    return (error, at) => {
      // A slow response makes a little progress each time, so progress alone does not reset the
      // failures.
      if (failures === 0 || at - failedAt >= (rate * stall) / 1000) {
        failures = 0;
        givenUp = this.#requests.end;
      }
      failures += 1;
      failedAt = at;
      return this.#requests.pause(failures, error, options, givenUp);
    };
  }

  /** Yields the bytes from `start` to `end`. When a connection breaks, a new one continues. */
  async *#follow(
    { facts, response }: Opened,
    start: number,
    end: number,
    options: Interruptible,
  ): AsyncGenerator<Uint8Array> {
    const { key, etag } = facts;
    const persist = this.#persistence(start, options);
    let source = response;
    for (let at = start; ; ) {
      try {
        for await (const piece of source.pieces()) {
          if (at + piece.length > end) throw this.#broken(key, "the response is longer than requested");
          at += piece.length;
          yield piece;
        }
        if (at === end) return;
        throw this.#broken(key, `the response ends ${end - at} bytes too early`);
      } catch (error) {
        await persist(error, at);
      }
      source = (await this.#openRest(key, at, end, etag, options)).response;
    }
  }

  #factsOf(key: string, { headers }: S3Response, bytes: number): ObjectFacts {
    if (!Number.isSafeInteger(bytes) || bytes < 0)
      throw this.#broken(key, "the response does not declare the length of the object");
    const modified = Date.parse(headers["last-modified"] ?? "");
    return { key, bytes, etag: headers.etag ?? "", modified: Number.isNaN(modified) ? 0 : modified };
  }

  #broken(key: string, what: string): S3Fault {
    const request = this.#requests.transport.describe({ method: "GET", key: this.#address.prefix + key });
    return new S3Fault(`${request}: ${what}`, { code: "BrokenAnswer" });
  }
}

/** Returns the error for an object that has fewer bytes than requested. */
export function tooShort(name: string, bytes: number, { start, length }: ByteRange): NodeError {
  return failure("OBJECT_CUT_OFF", { name, bytes, first: start, last: start + length - 1 });
}

const lengthOf = ({ headers }: S3Response): number => Number(headers["content-length"] ?? Number.NaN);

async function* nothing(): AsyncGenerator<Uint8Array> {}
