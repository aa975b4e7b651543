/** The way to one peer: everything that it is to be told, over one stream that is kept open. */
import type { Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import { Uint8ArrayList } from "uint8arraylist";
import type { Block } from "../../storage/blockstore/store.ts";
import { prefixOf } from "./keys.ts";
import { type Entry, frameOf, type Presence, type Version, versionOf } from "./message.ts";

export interface OpenedStream {
  readonly stream: Stream;
  /** Bytes after which another stream takes its place. */
  readonly most: number;
}

/** Opens a stream of the newest version that both sides speak. */
export type OpenStream = (signal: AbortSignal) => Promise<OpenedStream>;

interface Delivery {
  readonly blocks: readonly Block[];
  readonly pending: number;
  readonly sent: () => void;
  readonly failed: (reason: unknown) => void;
}

const nothing = { blocks: [], pending: 0 };

export interface LinkEvents {
  /** All that we want of the peer: it is told anew on a stream that follows a broken one. */
  standing(): Iterable<readonly [key: string, entry: Entry]>;
  /** A stream could not be opened or broke: what it carried may be lost. */
  broken(reason: unknown): void;
}

export interface LinkOptions {
  /** Milliseconds to open a stream in, and without any byte taken before a stream is given up. */
  readonly patience?: number;
  /** Others wait for the room that blocks on their way take: a stream is given up, too, that takes but a little of them. */
  readonly isPressed?: () => boolean;
}

/** Bytes that a stream has to take in the time of the patience while others wait, unless fewer are left. */
const leastTaken = 64 * 1024;

/** Of each kind in one message. */
const mostListed = 2048;

/** Presences that wait for a peer that does not read; it is told nothing of those beyond. */
const mostPresences = 4096;

export class Link {
  readonly #open: OpenStream;
  readonly #events: LinkEvents;
  readonly #patience: number;
  readonly #isPressed: () => boolean;
  readonly #closing = new AbortController();
  readonly #entries = new Map<string, Entry>();
  readonly #presences = new Map<string, Presence>();
  readonly #deliveries: Delivery[] = [];
  #stream: Stream | undefined;
  /** Bytes that the stream may still take. */
  #left = 0;
  #version: Version = versionOf("");
  #running = false;
  /** The last stream broke: the next begins with all wants. */
  #anew = false;

  constructor(open: OpenStream, events: LinkEvents, { patience = 10_000, isPressed = () => false }: LinkOptions = {}) {
    this.#open = open;
    this.#events = events;
    this.#patience = patience;
    this.#isPressed = isPressed;
  }

  /** Tells what we want. */
  want(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    this.#wake();
  }

  /** Takes a want back. */
  cancel(key: string, cid: CID): void {
    this.#entries.set(key, { cid: cid.bytes, priority: 0, cancel: true, have: false, tellMissing: false });
    this.#wake();
  }

  /** Tells whether a block is here. */
  tell(key: string, presence: Presence): void {
    if (this.#presences.size >= mostPresences && !this.#presences.has(key)) return;
    this.#presences.set(key, presence);
    this.#wake();
  }

  /**
   * Resolves when the blocks, not more than fit into a message, have been taken by the stream. `pending`: bytes of
   * others that wait behind them.
   */
  deliver(blocks: readonly Block[], pending: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (this.#closing.signal.aborted) reject(this.#closing.signal.reason);
    else this.#deliveries.push({ blocks, pending, sent: resolve, failed: reject });
    this.#wake();
    return promise;
  }

  /** Nothing more is told. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    this.#drop(reason);
    this.#stream?.abort(reason);
  }

  #drop(reason: unknown): void {
    this.#entries.clear();
    this.#presences.clear();
    for (const { failed } of this.#deliveries.splice(0)) failed(reason);
  }

  get #idle(): boolean {
    return this.#entries.size === 0 && this.#presences.size === 0 && this.#deliveries.length === 0;
  }

  /** What is said in one turn of the event loop goes in one message. */
  #wake(): void {
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
  async #send(): Promise<Delivery | undefined> {
    let delivery: Delivery | undefined;
    try {
      const stream = await this.#ready();
      delivery = this.#deliveries.shift();
      // In one go: whatever is sent by itself becomes frames of its own, below.
      const message = new Uint8ArrayList(...this.#message(delivery));
      this.#left -= message.byteLength;
      stream.send(message);
      await this.#taken(stream);
      if (this.#left <= 0) this.#leave(stream);
      return delivery;
    } catch (reason) {
      this.#stream?.abort(reason instanceof Error ? reason : new Error(String(reason)));
      this.#stream = undefined;
      this.#anew = true;
      delivery?.failed(reason);
      this.#drop(reason);
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
      return undefined;
    }
  }

  /** An open stream. */
  async #ready(): Promise<Stream> {
    if (this.#stream?.writeStatus === "writable") return this.#stream;
    this.#anew ||= this.#stream !== undefined;
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#patience)]);
    const { stream, most } = await this.#open(signal);
    this.#stream = stream;
    this.#left = most;
    this.#version = versionOf(stream.protocol);
    return stream;
  }

  /** It is whole as it is: what follows goes over another one, and nothing is told anew. */
  #leave(stream: Stream): void {
    this.#stream = undefined;
    stream.close({ signal: AbortSignal.timeout(this.#patience) }).catch((reason: Error) => {
      stream.abort(reason);
      // Its last bytes may be lost.
      this.#anew = true;
      if (!this.#closing.signal.aborted) this.#events.broken(reason);
    });
  }

  #message({ blocks, pending }: Pick<Delivery, "blocks" | "pending"> = nothing): Uint8Array[] {
    const full = this.#anew;
    this.#anew = false;
    if (full) {
      this.#entries.clear();
      for (const [key, entry] of this.#events.standing()) this.#entries.set(key, entry);
    }
    const { presences, prefixes } = this.#version;
    const entries = taken(this.#entries);
    return frameOf({
      full,
      entries: presences ? entries : entries.map((entry) => ({ ...entry, have: false, tellMissing: false })),
      parcels: blocks.map(({ cid, bytes }) => ({ prefix: prefixes ? prefixOf(cid) : undefined, data: bytes })),
      presences: presences ? taken(this.#presences) : this.#forget(),
      pending: presences ? pending : 0,
    });
  }

  /** A peer of an older version is told of no presence. */
  #forget(): readonly Presence[] {
    this.#presences.clear();
    return [];
  }

  /** Resolves when the stream has room again; rejects when it breaks, or takes too little for as long as the patience. */
  #taken(stream: Stream): Promise<void> | undefined {
    if (!stream.writableNeedsDrain) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let left = stream.writeBufferLength;
    const stalled = setInterval(() => {
      const least = this.#isPressed() ? Math.min(leastTaken, left) : 0;
      const took = left - stream.writeBufferLength;
      if (took <= 0 || took < least) reject(new Error("the peer does not read"));
      left = stream.writeBufferLength;
    }, this.#patience);
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
function taken<T>(from: Map<string, T>): T[] {
  if (from.size <= mostListed) {
    const all = [...from.values()];
    from.clear();
    return all;
  }
  const some: T[] = [];
  for (const [key, value] of from) {
    if (some.length === mostListed) break;
    some.push(value);
    from.delete(key);
  }
  return some;
}
