/** Queues everything that is sent to one peer, and sends it over one stream that stays open. */
import type { Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import { Uint8ArrayList } from "uint8arraylist";
import type { Block } from "../../storage/blockstore/store.ts";
import { encodeMessage } from "./encode_message.ts";
import { cidPrefix } from "./keys.ts";
import { type BlockPresence, type Version, versionOf, type WantlistEntry } from "./message.ts";

export interface OpenedStream {
  readonly stream: Stream;
  /** Number of bytes after which another stream replaces this one. */
  readonly maxBytes: number;
  /**
   * Whether the stream copies what it accepts, because it encrypts it: the memory may then be
   * reused.
   */
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
  /**
   * Yields everything that is wanted from the peer, to send it again on the stream that follows a
   * broken one.
   */
  wantlist(): Iterable<readonly [key: string, entry: WantlistEntry]>;
  /** Called when a stream could not be opened, or broke: its messages may be lost. */
  broken(reason: unknown): void;
}

export interface MessageQueueOptions {
  /**
   * Timeout in milliseconds for opening a stream, and for a stream that does not accept any byte.
   */
  readonly timeoutMs?: number;
  /**
   * Whether other peers wait for memory that this peer's blocks occupy. The stream must then also
   * accept a minimum number of bytes within the timeout.
   */
  readonly isUnderPressure?: () => boolean;
}

/**
 * Number of bytes that a stream must accept within `timeoutMs` under pressure, unless fewer remain.
 */
const MIN_BYTES_PER_TIMEOUT = 64 * 1024;

/** Maximum number of wantlist entries, and of presences, in one message. */
const MAX_ENTRIES_PER_MESSAGE = 2048;

/**
 * Maximum number of presences that are queued for a peer that does not read; further ones are
 * dropped.
 */
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
  /** Number of bytes that the stream may still carry. */
  #bytesLeft = 0;
  #copies = false;
  #version: Version = versionOf("");
  #running = false;
  /** Whether the last stream broke, so that the next one begins with the whole wantlist. */
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

  /** Opens the stream in advance, because that takes a round trip. */
  prepare(): void {
    if (this.#stream === undefined) this.#schedule();
  }

  addWant(key: string, entry: WantlistEntry): void {
    this.#entries.set(key, entry);
    this.#schedule();
  }

  /** Cancels a want. */
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
   * Sends blocks in one message, into which they must fit. Resolves when the stream has accepted
   * them, to whether it has copied them, so that their memory may be reused.
   *
   * @param pendingBytes bytes of the blocks that are queued behind them
   */
  sendBlocks(blocks: readonly Block[], pendingBytes: number): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    if (this.#closing.signal.aborted) reject(this.#closing.signal.reason);
    else this.#blockBatches.push({ blocks, pendingBytes, sent: resolve, failed: reject });
    this.#schedule();
    return promise;
  }

  /** Stops sending. */
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

  /**
   * Starts sending in the next turn of the event loop, so that everything added in the current turn
   * shares a message.
   */
  #schedule(): void {
    if (this.#running || this.#closing.signal.aborted) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    // A failure is reported only once there is something to send.
    if (this.#isEmpty) await this.#openStream().catch(() => undefined);
    while (!this.#isEmpty && !this.#closing.signal.aborted) {
      const batch = await this.#send();
      batch?.sent(this.#copies);
    }
    this.#running = false;
  }

  /**
   * Sends one message. If the stream breaks, everything queued is dropped, and the next message
   * opens another stream.
   */
  async #send(): Promise<BlockBatch | undefined> {
    let batch: BlockBatch | undefined;
    try {
      const stream = await this.#openStream();
      batch = this.#blockBatches.shift();
      // Sends all pieces at once, because each separate piece would become a frame of its own in
      // the layers below.
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

  /** Closes a stream that has carried its maximum; nothing is lost, so the next one continues. */
  #retire(stream: Stream): void {
    this.#stream = undefined;
    stream.close({ signal: AbortSignal.timeout(this.#timeoutMs) }).catch((reason: Error) => {
      stream.abort(reason);
      // The last bytes of the stream may be lost.
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

  /** A peer of an older version does not know presences. */
  #dropPresences(): readonly BlockPresence[] {
    this.#presences.clear();
    return [];
  }

  /**
   * Resolves when the stream accepts more data; rejects when it breaks, or accepts too little
   * within the timeout.
   */
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
    // The stream flushes its backlog in a microtask of its own, and may be full again afterwards.
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

/** Removes up to one message's maximum of entries from a map, in order, and returns them. */
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
