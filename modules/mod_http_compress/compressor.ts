/** Compresses answers of a Koa context, within the bounds of the server. */
import { ReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import type { Context } from "koa";
import {
  codingFor,
  EVENT_STREAM,
  isKnown,
  mayTouch,
  type Rules,
  recode,
  recodeHead,
  sizeOf,
  textOf,
  unchanged,
  varies,
} from "./answer.ts";
import type { Bounds } from "./bounds.ts";
import { type EncodingName, encodings } from "./encodings.ts";
import type { FileState } from "./file_cache.ts";
import { PackedStream } from "./packed_stream.ts";

/** What is told of the work. */
export interface Watcher {
  /** An answer goes out in this coding. */
  answered(encoding: EncodingName): void;
  moved(encoding: EncodingName, bytesIn: number, bytesOut: number): void;
  /** An answer goes out as it is, because the bounds are reached. */
  busy(): void;
  /** A file came from memory. */
  kept(): void;
}

/** Milliseconds that bytes of a body are held back where nothing more comes, in the hope of better compression. */
const MAX_HELD_BACK = 20;

/** Compresses for one entry, within the bounds that all share. */
export class Compressor {
  readonly #bounds: Bounds;
  readonly #watcher: Watcher;

  constructor(bounds: Bounds, watcher: Watcher) {
    this.#bounds = bounds;
    this.#watcher = watcher;
  }

  /** Compresses what the context holds, where the rules and the client want it. */
  async compress(context: Context, rules: Rules): Promise<void> {
    if (!mayTouch(context, rules)) return;
    if (context.status === 304) {
      unchanged(context);
      return;
    }
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
    this.#watcher.answered(encoding);
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
    this.#watcher.answered(encoding);
    recode(context, encoding, packed);
  }

  /** A file that is sent whole comes from memory, where it is not too large; any other is a stream like all. */
  async #file(context: Context, body: ReadStream, encoding: EncodingName): Promise<void> {
    const file = await wholeFile(context, body, this.#bounds.cachedFile);
    if (file === undefined) {
      if (context.method === "HEAD") head(context, encoding);
      else this.#stream(context, body, encoding);
      return;
    }
    const known = this.#bounds.cache.find(file, encoding);
    if (known !== undefined) this.#watcher.kept();
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
    this.#watcher.answered(encoding);
    recode(context, encoding, packed, packed.length);
  }
}

/** Undefined: only a part of it is sent, it is too large to be kept, or it has changed since its headers were made. */
async function wholeFile(context: Context, { path }: ReadStream, max: number): Promise<FileState | undefined> {
  const length = sizeOf(context);
  if (typeof path !== "string" || length === undefined || length > max) return undefined;
  const found = await stat(path).catch(() => undefined);
  const modified = textOf(context.response.get("Last-Modified"));
  if (found === undefined || found.size !== length || modified !== found.mtime.toUTCString()) return undefined;
  return { path, size: found.size, mtimeMs: found.mtimeMs, ino: found.ino };
}

/** Koa sends objects as JSON. */
function useJson(context: Context): void {
  const { body } = context;
  const prototype = typeof body === "object" && body !== null ? Object.getPrototypeOf(body) : undefined;
  if (prototype === Object.prototype || Array.isArray(body)) context.body = JSON.stringify(body);
}

/** Events go out one by one, other pieces when nothing more comes. */
function flushDelay(context: Context): number {
  return context.type === EVENT_STREAM ? 0 : MAX_HELD_BACK;
}

function head(context: Context, encoding: EncodingName, length?: number): void {
  endBody(context.body);
  recodeHead(context, encoding, length);
}

function endBody(body: unknown): void {
  if (body instanceof Readable) body.on("error", () => undefined).destroy();
}
