/** Compresses responses of a Koa context, within the limits of the server. */
import { ReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { Context } from "koa";
import type { Bounds } from "./bounds.ts";
import { type EncodingName, encodings } from "./encoders.ts";
import type { FileState } from "./file_cache.ts";
import { PackedStream } from "./packed_stream.ts";
import {
  codingFor,
  EVENT_STREAM,
  isKnown,
  isPartOfVarying,
  mayTouch,
  type Rules,
  recode,
  recodeHead,
  sizeOf,
  textOf,
  unchanged,
  varies,
} from "./response.ts";

/** Receives events about the work. */
export interface Watcher {
  /** Called when a response is sent in this coding. */
  compressed(encoding: EncodingName): void;
  moved(encoding: EncodingName, bytesIn: number, bytesOut: number): void;
  /** Called when a response is sent uncompressed, because a limit is reached. */
  busy(): void;
  /** Called when a file was served from the cache. */
  servedFromCache(): void;
}

/**
 * Maximum time in milliseconds that bytes of a body wait for more, because larger pieces compress
 * better.
 */
const MAX_FLUSH_DELAY = 20;

/** Compresses for one entry, within the shared limits. */
export class Compressor {
  readonly #bounds: Bounds;
  readonly #watcher: Watcher;

  constructor(bounds: Bounds, watcher: Watcher) {
    this.#bounds = bounds;
    this.#watcher = watcher;
  }

  /** Compresses the body of the context, if the rules and the client allow it. */
  async compress(context: Context, rules: Rules): Promise<void> {
    if (!mayTouch(context, rules)) return;
    if (context.status === 304) {
      unchanged(context);
      return;
    }
    if (isPartOfVarying(context, rules)) context.vary("Accept-Encoding");
    useJson(context);
    if (!varies(context, rules, sizeOf(context))) return;
    context.vary("Accept-Encoding");
    const encoding = codingFor(context, rules);
    if (encoding === undefined) return;
    if (isKnown(context)) {
      endBody(context.body);
      context.status = 304;
      unchanged(context);
      return;
    }
    const { body } = context;
    if (body instanceof ReadStream) await this.#file(context, body, encoding);
    else if (context.method === "HEAD") head(context, encoding);
    else if (body instanceof Readable) this.#stream(context, body, encoding, flushDelay(context));
    else if (typeof body === "string" || body instanceof Uint8Array) await this.#whole(context, body, encoding);
  }

  async #whole(context: Context, body: string | Uint8Array, encoding: EncodingName): Promise<void> {
    const plain = typeof body === "string" ? Buffer.from(body) : body;
    const packed = await (this.#bounds.jobs.try(() => encodings[encoding].whole(plain, "fast")) ??
      this.#watcher.busy());
    if (packed === undefined || packed.length >= plain.length) return;
    this.#watcher.moved(encoding, plain.length, packed.length);
    this.#watcher.compressed(encoding);
    recode(context, encoding, packed, packed.length);
  }

  #stream(context: Context, body: Readable, encoding: EncodingName, flushAfter?: number): void {
    const leave = this.#bounds.enterStream();
    if (leave === undefined) {
      this.#watcher.busy();
      return;
    }
    const packed = new PackedStream(body, encodings[encoding], flushAfter, {
      jobs: this.#bounds.jobs,
      moved: (bytesIn, bytesOut) => this.#watcher.moved(encoding, bytesIn, bytesOut),
      ended: leave,
    });
    this.#watcher.compressed(encoding);
    recode(context, encoding, packed);
  }

  /**
   * A complete file comes from the cache, unless it is too large. Every other file is compressed as
   * a stream.
   */
  async #file(context: Context, body: ReadStream, encoding: EncodingName): Promise<void> {
    const file = await wholeFile(context, body, this.#bounds.cachedFile);
    if (file === undefined) {
      if (context.method === "HEAD") head(context, encoding);
      else this.#stream(context, body, encoding);
      return;
    }
    const known = this.#bounds.cache.find(file, encoding);
    if (known !== undefined) this.#watcher.servedFromCache();
    else if (context.method === "HEAD") return head(context, encoding);
    const pack = (bytes: Buffer) => encodings[encoding].whole(bytes, "well");
    const made = known ?? this.#bounds.cache.make(file, encoding, pack, this.#bounds.jobs) ?? this.#watcher.busy();
    const packed = (await made)?.bytes;
    if (packed === undefined) return;
    if (context.method === "HEAD") {
      head(context, encoding, packed.length);
      return;
    }
    endBody(body);
    this.#watcher.moved(encoding, file.size, packed.length);
    this.#watcher.compressed(encoding);
    recode(context, encoding, packed, packed.length);
  }
}

/**
 * Returns undefined if only a part of the file is sent, if it is too large for the cache, or if it
 * has changed since its headers were made.
 */
async function wholeFile(context: Context, { path }: ReadStream, max: number): Promise<FileState | undefined> {
  const length = sizeOf(context);
  if (typeof path !== "string" || length === undefined || length > max) return undefined;
  const found = await stat(path).catch(() => undefined);
  const modified = textOf(context.response.get("Last-Modified"));
  if (found === undefined || found.size !== length || modified !== found.mtime.toUTCString()) return undefined;
  return { path, size: found.size, mtimeMs: found.mtimeMs, ino: found.ino };
}

/** Koa sends objects as JSON, so they are serialized here. */
function useJson(context: Context): void {
  const { body } = context;
  const prototype = typeof body === "object" && body !== null ? Object.getPrototypeOf(body) : undefined;
  if (prototype === Object.prototype || Array.isArray(body)) context.body = JSON.stringify(body);
}

/** Events are sent one by one. Other pieces wait briefly for more. */
function flushDelay(context: Context): number {
  return context.type === EVENT_STREAM ? 0 : MAX_FLUSH_DELAY;
}

function head(context: Context, encoding: EncodingName, length?: number): void {
  endBody(context.body);
  recodeHead(context, encoding, length);
}

function endBody(body: unknown): void {
  if (body instanceof Readable) body.on("error", () => undefined).destroy();
}
