/**
 * An object store in memory for tests. Several hosts of one process share its contents, and each
 * host has faults of its own.
 */
import { createHash } from "node:crypto";
import { newMetrics, type RequestKind } from "#node/storage/shared/s3/metrics.ts";
import type {
  ByteRange,
  Interruptible,
  ListOptions,
  ObjectFacts,
  ObjectStore,
  ObjectStream,
  Payload,
  PutNewResult,
  PutOptions,
  ReadOptions,
  StreamOptions,
} from "#node/storage/shared/s3/objects.ts";
import { bytesOf } from "#node/storage/shared/s3/payload.ts";
import { tooShort } from "#node/storage/shared/s3/reads.ts";
import { failure, type NodeError } from "#node/util/errors.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly modified: number;
}

/**
 * Faults of requests. Each function may delay the request, or throw the error that the caller gets.
 */
export interface Faults {
  /** Runs before the store does anything: an error here means that nothing happened. */
  before?(kind: RequestKind, keys: readonly string[]): void | Promise<void>;
  /** Runs after the store has done it: an error here is a response that was lost. */
  after?(kind: RequestKind, keys: readonly string[]): void | Promise<void>;
}

/** The error of a call that the store does not respond to. */
export const unavailable = (reason = "the test made it unavailable"): NodeError =>
  failure("STORE_UNAVAILABLE", { reason });

const PAGE = 1000;

export class MemoryObjects implements ObjectStore {
  readonly name = "memory:";
  readonly metrics = newMetrics();
  /** Objects by key. Tests may read and change them. */
  readonly contents: Map<string, Stored>;
  faults: Faults;
  readonly #closed = new AbortController();

  /** `contents`: those of another instance, which makes this one another host of the same store. */
  constructor(contents: Map<string, Stored> = new Map(), faults: Faults = {}) {
    this.contents = contents;
    this.faults = faults;
  }

  putNew(key: string, payload: Payload, options: PutOptions = {}): Promise<PutNewResult> {
    return this.#request("put", [key], options, async () => {
      const bytes = await this.#received(payload);
      const stored = this.contents.get(key);
      if (stored !== undefined) return Buffer.compare(stored.bytes, bytes) === 0 ? "same" : "different";
      this.contents.set(key, { bytes, modified: Date.now() });
      return "written";
    });
  }

  put(key: string, payload: Payload, options: PutOptions = {}): Promise<void> {
    return this.#request("put", [key], options, async () => {
      this.contents.set(key, { bytes: await this.#received(payload), modified: Date.now() });
    });
  }

  read(key: string, range: ByteRange, options: ReadOptions = {}): Promise<Uint8Array | undefined> {
    return this.#request("get", [key], options, () => {
      const stored = this.contents.get(key);
      if (stored === undefined) return undefined;
      const bytes = this.#part(key, stored, range);
      const { into = new Uint8Array(bytes.length) } = options;
      into.set(bytes);
      options.onProgress?.(bytes.length);
      return into.subarray(0, bytes.length);
    });
  }

  stream(key: string, options: StreamOptions = {}): Promise<ObjectStream | undefined> {
    return this.#request("get", [key], options, () => {
      const stored = this.contents.get(key);
      if (stored === undefined) return undefined;
      const { range = { start: 0, length: stored.bytes.length }, signal } = options;
      const bytes = this.#part(key, stored, range);
      return { facts: factsOf(key, stored), body: inPieces(bytes, signal) };
    });
  }

  async probe(): Promise<void> {
    await this.head("probe");
  }

  head(key: string, options: Interruptible = {}): Promise<ObjectFacts | undefined> {
    return this.#request("head", [key], options, () => {
      const stored = this.contents.get(key);
      return stored === undefined ? undefined : factsOf(key, stored);
    });
  }

  delete(keys: readonly string[], options: Interruptible = {}): Promise<void> {
    if (keys.length === 0) return Promise.resolve();
    return this.#request("delete", keys, options, () => {
      for (const key of keys) this.contents.delete(key);
    });
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<readonly ObjectFacts[], void, undefined> {
    for (let { after } = options; ; ) {
      const page = await this.#request("list", [prefix], options, () => this.#page(prefix, after));
      if (page.length > 0) yield page;
      if (page.length < PAGE) return;
      after = page.at(-1)?.key;
    }
  }

  abandonUploads(_isOver: (key: string) => boolean, _options?: Interruptible): Promise<number> {
    return Promise.resolve(0);
  }

  check(options: Interruptible = {}): Promise<void> {
    return this.#request("head", [], options, () => undefined);
  }

  async close(): Promise<void> {
    this.#closed.abort(failure("STORE_CLOSED"));
  }

  /**
   * Runs a request between the faults. A signal stops waiting for the request, but not the request
   * itself.
   */
  async #request<T>(
    kind: RequestKind,
    keys: readonly string[],
    { signal }: Interruptible,
    run: () => T | Promise<T>,
  ): Promise<T> {
    const signals = signal === undefined ? this.#closed.signal : AbortSignal.any([signal, this.#closed.signal]);
    signals.throwIfAborted();
    const metrics = this.metrics[kind];
    metrics.requests += 1;
    const ended = Promise.withResolvers<never>();
    const end = () => ended.reject(signals.reason);
    signals.addEventListener("abort", end);
    try {
      const done = (async () => {
        await this.faults.before?.(kind, keys);
        const result = await run();
        await this.faults.after?.(kind, keys);
        return result;
      })();
      return await Promise.race([done, ended.promise]);
    } catch (error) {
      metrics.errors += 1;
      throw error;
    } finally {
      signals.removeEventListener("abort", end);
    }
  }

  async #received(payload: Payload): Promise<Uint8Array> {
    const bytes = Uint8Array.from(await bytesOf(payload));
    this.metrics.put.sent += bytes.length;
    return bytes;
  }

  #part(key: string, { bytes }: Stored, { start, length }: ByteRange): Uint8Array {
    if (start + length > bytes.length) throw tooShort(`${this.name}${key}`, bytes.length, { start, length });
    this.metrics.get.received += length;
    return bytes.subarray(start, start + length);
  }

  #page(prefix: string, after: string | undefined): ObjectFacts[] {
    const keys = [...this.contents.keys()].filter(
      (key) => key.startsWith(prefix) && (after === undefined || byBytes(key, after) > 0),
    );
    return keys
      .sort(byBytes)
      .slice(0, PAGE)
      .map((key) => factsOf(key, this.contents.get(key) as Stored));
  }
}

function factsOf(key: string, { bytes, modified }: Stored): ObjectFacts {
  return { key, bytes: bytes.length, etag: `"${createHash("md5").update(bytes).digest("hex")}"`, modified };
}

async function* inPieces(bytes: Uint8Array, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const PIECE = 64 * 1024;
  for (let at = 0; at < bytes.length; at += PIECE) {
    signal?.throwIfAborted();
    yield Uint8Array.from(bytes.subarray(at, at + PIECE));
  }
}

const byBytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));
