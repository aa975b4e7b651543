/** Everything that is sent to one peer, over one stream that is kept open. */
import type { Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import { Uint8ArrayList } from "uint8arraylist";
import type { Block } from "../../storage/blockstore/store.ts";
import { encodeMessage } from "./encode_message.ts";
import { cidPrefix } from "./keys.ts";
import { type BlockPresence, type Version, versionOf, type WantlistEntry } from "./message.ts";

export interface OpenedStream {
  readonly stream: Stream;
  /** Bytes after which another stream takes its place. */
  readonly maxBytes: number;
  /** What it has taken it has copied, as it is encrypted: the memory may be used again. */
  readonly copies: boolean;
}

/** Opens a stream of the newest version that both sides speak. */
export type OpenStream = (signal: AbortSignal) => Promise<OpenedStream>;

interface BlockBatch {
  readonly blocks: readonly Block[];
  readonly pendingBytes: number;
  readonly sent: (isCopied: boolean) => void;
  readonly failed: (reason: unknown) => void;
}

const emptyBatch = { blocks: [], pendingBytes: 0 };

export interface MessageQueueEvents {
  /** All that is wanted of the peer, to be sent again on a stream that follows a broken one. */
  wantlist(): Iterable<readonly [key: string, entry: WantlistEntry]>;
  /** A stream could not be opened, or broke: its messages may be lost. */
  broken(reason: unknown): void;
}

export interface MessageQueueOptions {
  /** Milliseconds to open a stream in, and without any byte taken before a stream is given up. */
  readonly timeoutMs?: number;
  /** Other peers wait for memory that blocks for this one hold: then it also has to take enough in that time. */
  readonly isUnderPressure?: () => boolean;
}

/** Bytes that a stream has to take within `timeoutMs` under pressure, unless fewer are left. */
const MIN_BYTES_PER_TIMEOUT = 64 * 1024;

/** Wantlist entries, and presences, in one message. */
const MAX_ENTRIES_PER_MESSAGE = 2048;

/** Presences that wait for a peer that does not read; further ones are dropped. */
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
  /** Bytes that the stream may still carry. */
  #bytesLeft = 0;
  #copies = false;
  #version: Version = versionOf("");
  #running = false;
  /** The last stream broke: the next one begins with the whole wantlist. */
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

  /** Opens the stream before there is anything to send: that takes a round trip. */
  prepare(): void {
    if (this.#stream === undefined) this.#schedule();
  }

  addWant(key: string, entry: WantlistEntry): void {
    this.#entries.set(key, entry);
    this.#schedule();
  }

  /** Takes a want back. */
  addCancel(key: string, cid: CID): void {
    this.#entries.set(key, { cid: cid.bytes, priority: 0, cancel: true, have: false, sendDontHave: false });
    this.#schedule();
  }

  addPresence(key: string, presence: BlockPresence): void {
    if (this.#presences.size >= MAX_QUEUED_PRESENCES && !this.#presences.has(key)) return;
    this.#presences.set(key, presence);
    this.#schedule();
  }

  /**
   * Sends blocks in one message, into which they must fit. Resolves when the stream has taken them: with whether it has copied them,
   * so that their memory may be used again.
   *
   * @param pendingBytes of blocks that wait to be sent after them
   */
  sendBlocks(blocks: readonly Block[], pendingBytes: number): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    if (this.#closing.signal.aborted) reject(this.#closing.signal.reason);
    else this.#blockBatches.push({ blocks, pendingBytes, sent: resolve, failed: reject });
    this.#schedule();
    return promise;
  }

  /** Nothing is sent any more. */
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

  get #isEmpty(): boolean {
    return this.#entries.size === 0 && this.#presences.size === 0 && this.#blockBatches.length === 0;
  }

  /** What is added within one turn of the event loop is sent in one message. */
  #schedule(): void {
    if (this.#running || this.#closing.signal.aborted) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    // Should it fail, that is told when there is something to send.
    if (this.#isEmpty) await this.#openStream().catch(() => undefined);
    while (!this.#isEmpty && !this.#closing.signal.aborted) {
      const batch = await this.#send();
      batch?.sent(this.#copies);
    }
    this.#running = false;
  }

  /** Sends one message. When the stream breaks, everything that waits is given up; the next message opens another. */
  async #send(): Promise<BlockBatch | undefined> {
    let batch: BlockBatch | undefined;
    try {
      const stream = await this.#openStream();
      batch = this.#blockBatches.shift();
      // At once: what is sent by itself becomes a frame of its own in the layers below.
      const message = new Uint8ArrayList(...this.#takeMessage(batch));
      this.#bytesLeft -= message.byteLength;
      stream.send(message);
      await this.#drained(stream);
      if (this.#bytesLeft <= 0) this.#retire(stream);
      return batch;
    } catch (reason) {
      this.#stream?.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#stream = undefined;
      this.#resendAll = true;
      batch?.failed(reason);
      this.#failAll(reason);
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
      return undefined;
    }
  }

  async #openStream(): Promise<Stream> {
    if (this.#stream?.writeStatus === "writable") return this.#stream;
    this.#resendAll ||= this.#stream !== undefined;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#timeoutMs)]);
    const { stream, maxBytes, copies } = await this.#open(signal);
    this.#stream = stream;
    this.#bytesLeft = maxBytes;
    this.#copies = copies;
    this.#version = versionOf(stream.protocol);
    return stream;
  }

  /** Closes a stream that carried all it may; nothing is lost, so the next one continues. */
  #retire(stream: Stream): void {
    this.#stream = undefined;
    stream.close({ signal: AbortSignal.timeout(this.#timeoutMs) }).catch((reason: Error) => {
      stream.abort(reason);
      // Its last bytes may be lost.
      this.#resendAll = true;
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
    });
  }

  #takeMessage({ blocks, pendingBytes }: Pick<BlockBatch, "blocks" | "pendingBytes"> = emptyBatch): Uint8Array[] {
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
      pendingBytes: presences ? pendingBytes : 0,
    });
  }

  /** A peer of an older version knows no presences. */
  #dropPresences(): readonly BlockPresence[] {
    this.#presences.clear();
    return [];
  }

  /** Resolves when the stream takes more again; rejects when it breaks, or takes too little within the timeout. */
  #drained(stream: Stream): Promise<void> | undefined {
    if (!stream.writableNeedsDrain) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let left = stream.writeBufferLength;
    const check = setInterval(() => {
      const least = this.#isUnderPressure() ? Math.min(MIN_BYTES_PER_TIMEOUT, left) : 0;
      const taken = left - stream.writeBufferLength;
      if (taken <= 0 || taken < least) reject(new Error("the peer does not read"));
      left = stream.writeBufferLength;
    }, this.#timeoutMs);
    // The stream sends what it held back in a microtask of its own; after that it may be full again.
    const drained = () => queueMicrotask(() => stream.writableNeedsDrain || resolve());
    const closed = () => reject(new Error("the stream was closed"));
    stream.addEventListener("drain", drained);
    stream.addEventListener("close", closed);
    return promise.finally(() => {
      clearInterval(check);
      stream.removeEventListener("drain", drained);
      stream.removeEventListener("close", closed);
    });
  }
}

/** Takes up to as many entries as a message may have out of a map, in its order. */
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
