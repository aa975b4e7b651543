/** Reading objects of an S3 store: ranges, whole bodies that outlive their connections, and what is known without reading. */
import { createHash } from "node:crypto";
import { failure, NodeError } from "../../../util/errors.ts";
import { S3Fault } from "./faults.ts";
import type { ByteRange, Interruptible, ObjectFacts, ObjectStream, ReadOptions, StreamOptions } from "./objects.ts";
import { type Attempt, hex, isStatus, type Requests } from "./requests.ts";
import type { Place } from "./settings.ts";
import type { S3Answer } from "./transport.ts";

/** The SHA-256 of an object, as its writer knew it: its etag says nothing that all stores agree on. */
export const SHA256_HEADER = "x-amz-meta-sha256";

/** An answer that is what was asked for, as far as its head says. */
interface Opened {
  readonly facts: ObjectFacts;
  readonly answer: S3Answer;
}

/** Waits before what broke off after so many bytes goes on; throws where it does not. */
type Persist = (error: unknown, at: number) => Promise<void>;

/** Of the object whose answer was too slow: so much is read of it to see whether that has changed. */
const PROBE_BYTES = 16 * 1024;

export class Reads {
  readonly #place: Place;
  readonly #requests: Requests;
  constructor(place: Place, requests: Requests) {
    this.#place = place;
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
      if (at + piece.length > length) throw this.#broken(key, "it answers with more than was asked for");
      into.set(piece, at);
      at += piece.length;
      onProgress?.(at);
    };
    const { etag } = opened.facts;
    for (;;) {
      try {
        await opened.answer.receive(take);
        if (at === length) return into.subarray(0, length);
        throw this.#broken(key, `its answer ends ${length - at} bytes too early`);
      } catch (error) {
        await persist(error, at);
      }
      opened = await this.#goOn(key, start + at, start + length, etag, options);
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

  /** Asks for something that shows whether objects can be read. */
  async probe(options: Interruptible): Promise<void> {
    const { transport } = this.#requests;
    if (transport.slow === undefined) return void (await this.head("probe", options));
    const found = await this.stream(transport.slow.slice(this.#place.prefix.length), options);
    let left = PROBE_BYTES;
    for await (const { length } of found?.body ?? []) {
      left -= length;
      if (left <= 0) break;
    }
    transport.slow = undefined;
  }

  head(key: string, options: Interruptible): Promise<ObjectFacts | undefined> {
    return this.#requests.run("head", options, async (attempt) => {
      const answer = await attempt.find({ method: "HEAD", key: this.#place.prefix + key });
      await answer?.drop();
      return answer && this.#factsOf(key, answer, lengthOf(answer));
    });
  }

  /** How an object compares with what was to be written; undefined when there is none. */
  async compare(
    attempt: Attempt,
    key: string,
    bytes: number,
    sha256: string,
  ): Promise<"same" | "different" | undefined> {
    const answer = await attempt.find({ method: "HEAD", key: this.#place.prefix + key }, "head");
    if (answer === undefined) return undefined;
    await answer.drop();
    if (lengthOf(answer) !== bytes) return "different";
    const known = answer.headers[SHA256_HEADER];
    if (known !== undefined) return known === sha256 ? "same" : "different";
    // Put there by another program.
    const found = bytes === 0 ? undefined : await this.#open(attempt, key, 0, undefined);
    const hash = createHash("sha256");
    await found?.answer.receive((piece) => void hash.update(piece));
    return hex(hash.digest()) === sha256 ? "same" : "different";
  }

  /** From `start` on, to the end without a length. `etag`: that of the same object. */
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
      key: this.#place.prefix + key,
      headers: {
        ...(whole ? {} : { range: `bytes=${start}-${length === undefined ? "" : start + length - 1}` }),
        ...(etag === undefined ? {} : { "if-match": etag }),
      },
    } as const;
    const answer = await attempt.find(request, "get").catch(async (error: unknown) => {
      if (isStatus(error, 412)) throw new NodeError(`${this.#place.name}${key} was changed while it was read`);
      if (!isStatus(error, 416) || length === undefined) throw error;
      const found = await attempt.find({ method: "HEAD", key: request.key }, "head");
      await found?.drop();
      if (found === undefined) return undefined;
      throw tooShort(this.#place.name + key, lengthOf(found), { start, length });
    });
    if (answer === undefined) return undefined;
    const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers["content-range"] ?? "") ?? [];
    const bytes = answer.status === 206 ? Number(total) : lengthOf(answer);
    const from = answer.status === 206 ? Number(first) : 0;
    const end = answer.status === 206 ? Number(last) + 1 : bytes;
    if (from !== start || !(end <= bytes)) {
      answer.end();
      throw new NodeError(
        `${this.#requests.transport.describe(request)}: it does not answer with the range that was asked for`,
      );
    }
    if (length !== undefined && end !== start + length) {
      answer.end();
      if (end < start + length) throw tooShort(this.#place.name + key, bytes, { start, length });
      throw new NodeError(`${this.#requests.transport.describe(request)}: it answers with more than was asked for`);
    }
    return { facts: this.#factsOf(key, answer, bytes), answer };
  }

  #openFirst(
    key: string,
    start: number,
    length: number | undefined,
    options: Interruptible,
  ): Promise<Opened | undefined> {
    return this.#requests.run("get", options, (attempt) => this.#open(attempt, key, start, length));
  }

  /** The rest of what was opened before. */
  async #goOn(key: string, at: number, end: number, etag: string, options: Interruptible): Promise<Opened> {
    const rest = await this.#requests.run("get", options, (attempt) => this.#open(attempt, key, at, end - at, etag));
    if (rest === undefined) throw new NodeError(`${this.#place.name}${key} was removed while it was read`);
    return rest;
  }

  #persistence(start: number, options: Interruptible): Persist {
    const { stall, rate } = this.#place.limits;
    let [failures, failedAt, givenUp] = [0, start, 0];
    return (error, at) => {
      // An answer that trickles gets on a little each time.
      if (failures === 0 || at - failedAt >= (rate * stall) / 1000) [failures, givenUp] = [0, this.#requests.end];
      failures += 1;
      failedAt = at;
      return this.#requests.pause(failures, error, options, givenUp);
    };
  }

  /** The bytes from `start` to `end`: a connection that breaks is followed by another. */
  async *#follow(
    { facts, answer }: Opened,
    start: number,
    end: number,
    options: Interruptible,
  ): AsyncGenerator<Uint8Array> {
    const { key, etag } = facts;
    const persist = this.#persistence(start, options);
    let source = answer;
    for (let at = start; ; ) {
      try {
        for await (const piece of source.pieces()) {
          if (at + piece.length > end) throw this.#broken(key, "it answers with more than was asked for");
          at += piece.length;
          yield piece;
        }
        if (at === end) return;
        throw this.#broken(key, `its answer ends ${end - at} bytes too early`);
      } catch (error) {
        await persist(error, at);
      }
      source = (await this.#goOn(key, at, end, etag, options)).answer;
    }
  }

  #factsOf(key: string, { headers }: S3Answer, bytes: number): ObjectFacts {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw this.#broken(key, "it does not say how long the object is");
    const modified = Date.parse(headers["last-modified"] ?? "");
    return { key, bytes, etag: headers.etag ?? "", modified: Number.isNaN(modified) ? 0 : modified };
  }

  #broken(key: string, what: string): S3Fault {
    const request = this.#requests.transport.describe({ method: "GET", key: this.#place.prefix + key });
    return new S3Fault(`${request}: ${what}`, { code: "BrokenAnswer" });
  }
}

/** The object has fewer bytes than were asked for. */
export function tooShort(name: string, bytes: number, { start, length }: ByteRange): NodeError {
  return failure("OBJECT_CUT_OFF", { name, bytes, first: start, last: start + length - 1 });
}

const lengthOf = ({ headers }: S3Answer): number => Number(headers["content-length"] ?? Number.NaN);

async function* nothing(): AsyncGenerator<Uint8Array> {}
