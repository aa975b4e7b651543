/** The way to one peer: everything that it is to be told, over one stream that is kept open. */
import type { Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import { Uint8ArrayList } from "uint8arraylist";
import type { Block } from "../../storage/blockstore/store.ts";
import { cidPrefix } from "./keys.ts";
import { type BlockPresence, encodeMessage, type Version, versionOf, type WantlistEntry } from "./message.ts";

export interface OpenedStream {
  readonly stream: Stream;
  /** Bytes after which another stream takes its place. */
  readonly maxBytes: number;
}

/** Opens a stream of the newest version that both sides speak. */
export type OpenStream = (signal: AbortSignal) => Promise<OpenedStream>;

interface BlockBatch {
  readonly blocks: readonly Block[];
  readonly pending: number;
  readonly sent: () => void;
  readonly failed: (reason: unknown) => void;
}

const nothing = { blocks: [], pending: 0 };

export interface MessageQueueEvents {
  /** All that we want of the peer: it is told anew on a stream that follows a broken one. */
  wantlist(): Iterable<readonly [key: string, entry: WantlistEntry]>;
  /** A stream could not be opened or broke: what it carried may be lost. */
  broken(reason: unknown): void;
}

export interface MessageQueueOptions {
  /** Milliseconds to open a stream in, and without any byte taken before a stream is given up. */
  readonly timeoutMs?: number;
  /** Others wait for the room that blocks on their way take: a stream is given up, too, that takes but a little of them. */
  readonly isUnderPressure?: () => boolean;
}

/** Bytes that a stream has to take in the time of the patience while others wait, unless fewer are left. */
const MIN_BYTES_PER_TIMEOUT = 64 * 1024;

/** Of each kind in one message. */
const MAX_ENTRIES_PER_MESSAGE = 2048;

/** Presences that wait for a peer that does not read; it is told nothing of those beyond. */
const MAX_QUEUED_PRESENCES = 4096;

export class MessageQueue {
  readonly #open: OpenStream;
  readonly #events: MessageQueueEvents;
  readonly #timeoutMs: number;
  readonly #isUnderPressure: () => boolean;
  readonly #closing = new AbortController();
  readonly #entries = new Map<string, WantlistEntry>();
  readonly #presences = new Map<string, BlockPresence>();
  readonly #blockBatches: BlockBatch[] = [];
  #stream: Stream | undefined;
  /** Bytes that the stream may still take. */
  #bytesLeft = 0;
  #version: Version = versionOf("");
  #running = false;
  /** The last stream broke: the next begins with all wants. */
  #resendAll = false;

  constructor(
    open: OpenStream,
    events: MessageQueueEvents,
    { timeoutMs = 10_000, isUnderPressure = () => false }: MessageQueueOptions = {},
  ) {
    this.#open = open;
    this.#events = events;
    this.#timeoutMs = timeoutMs;
    this.#isUnderPressure = isUnderPressure;
  }

  /** Tells what we want. */
  addWant(key: string, entry: WantlistEntry): void {
    this.#entries.set(key, entry);
    this.#schedule();
  }

  /** Takes a want back. */
  addCancel(key: string, cid: CID): void {
    this.#entries.set(key, { cid: cid.bytes, priority: 0, cancel: true, have: false, sendDontHave: false });
    this.#schedule();
  }

  /** Tells whether a block is here. */
  addPresence(key: string, presence: BlockPresence): void {
    if (this.#presences.size >= MAX_QUEUED_PRESENCES && !this.#presences.has(key)) return;
    this.#presences.set(key, presence);
    this.#schedule();
  }

  /**
   * Resolves when the blocks, not more than fit into a message, have been taken by the stream. `pending`: bytes of
   * others that wait behind them.
   */
  sendBlocks(blocks: readonly Block[], pending: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (this.#closing.signal.aborted) reject(this.#closing.signal.reason);
    else this.#blockBatches.push({ blocks, pending, sent: resolve, failed: reject });
    this.#schedule();
    return promise;
  }

  /** Nothing more is told. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    this.#failAll(reason);
    this.#stream?.abort(reason);
  }

  #failAll(reason: unknown): void {
    this.#entries.clear();
    this.#presences.clear();
    for (const { failed } of this.#blockBatches.splice(0)) failed(reason);
  }

  get #idle(): boolean {
    return this.#entries.size === 0 && this.#presences.size === 0 && this.#blockBatches.length === 0;
  }

  /** What is said in one turn of the event loop goes in one message. */
  #schedule(): void {
    if (this.#running || this.#closing.signal.aborted) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (!this.#idle && !this.#closing.signal.aborted) {
      const delivery = await this.#send();
      delivery?.sent();
    }
    this.#running = false;
  }

  /** One message. A stream that is broken is replaced once; then all that waits is given up. */
  async #send(): Promise<BlockBatch | undefined> {
    let delivery: BlockBatch | undefined;
    try {
      const stream = await this.#openStream();
      delivery = this.#blockBatches.shift();
      // In one go: whatever is sent by itself becomes frames of its own, below.
      const message = new Uint8ArrayList(...this.#message(delivery));
      this.#bytesLeft -= message.byteLength;
      stream.send(message);
      await this.#drained(stream);
      if (this.#bytesLeft <= 0) this.#retire(stream);
      return delivery;
    } catch (reason) {
      this.#stream?.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#stream = undefined;
      this.#resendAll = true;
      delivery?.failed(reason);
      this.#failAll(reason);
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
      return undefined;
    }
  }

  /** An open stream. */
  async #openStream(): Promise<Stream> {
    if (this.#stream?.writeStatus === "writable") return this.#stream;
    this.#resendAll ||= this.#stream !== undefined;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#timeoutMs)]);
    const { stream, maxBytes } = await this.#open(signal);
    this.#stream = stream;
    this.#bytesLeft = maxBytes;
    this.#version = versionOf(stream.protocol);
    return stream;
  }

  /** It is whole as it is: what follows goes over another one, and nothing is told anew. */
  #retire(stream: Stream): void {
    this.#stream = undefined;
    stream.close({ signal: AbortSignal.timeout(this.#timeoutMs) }).catch((reason: Error) => {
      stream.abort(reason);
      // Its last bytes may be lost.
      this.#resendAll = true;
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
    });
  }

  #message({ blocks, pending }: Pick<BlockBatch, "blocks" | "pending"> = nothing): Uint8Array[] {
    const full = this.#resendAll;
    this.#resendAll = false;
    if (full) {
      this.#entries.clear();
      for (const [key, entry] of this.#events.wantlist()) this.#entries.set(key, entry);
    }
    const { presences, prefixes } = this.#version;
    const entries = takeFirst(this.#entries);
    return encodeMessage({
      full,
      entries: presences ? entries : entries.map((entry) => ({ ...entry, have: false, sendDontHave: false })),
      blocks: blocks.map(({ cid, bytes }) => ({ prefix: prefixes ? cidPrefix(cid) : undefined, data: bytes })),
      presences: presences ? takeFirst(this.#presences) : this.#dropPresences(),
      pendingBytes: presences ? pending : 0,
    });
  }

  /** A peer of an older version is told of no presence. */
  #dropPresences(): readonly BlockPresence[] {
    this.#presences.clear();
    return [];
  }

  /** Resolves when the stream has room again; rejects when it breaks, or takes too little for as long as the patience. */
  #drained(stream: Stream): Promise<void> | undefined {
    if (!stream.writableNeedsDrain) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let left = stream.writeBufferLength;
    const stalled = setInterval(() => {
      const least = this.#isUnderPressure() ? Math.min(MIN_BYTES_PER_TIMEOUT, left) : 0;
      const took = left - stream.writeBufferLength;
      if (took <= 0 || took < least) reject(new Error("the peer does not read"));
      left = stream.writeBufferLength;
    }, this.#timeoutMs);
    // What was kept back is sent first, in a microtask of the stream's own; then it may be full again.
    const drained = () => queueMicrotask(() => stream.writableNeedsDrain || resolve());
    const closed = () => reject(new Error("the stream was closed"));
    stream.addEventListener("drain", drained);
    stream.addEventListener("close", closed);
    return promise.finally(() => {
      clearInterval(stalled);
      stream.removeEventListener("drain", drained);
      stream.removeEventListener("close", closed);
    });
  }
}

/** Takes the first ones out of a map, in their order. */
function takeFirst<T>(from: Map<string, T>): T[] {
  if (from.size <= MAX_ENTRIES_PER_MESSAGE) {
    const all = [...from.values()];
    from.clear();
    return all;
  }
  const some: T[] = [];
  for (const [key, value] of from) {
    if (some.length === MAX_ENTRIES_PER_MESSAGE) break;
    some.push(value);
    from.delete(key);
  }
  return some;
}
