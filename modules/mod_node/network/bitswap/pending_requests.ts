/** What one peer is asked for, and how fast it answers. */
import type { CID } from "multiformats/cid";
import type { WantlistEntry } from "./message.ts";
import type { MessageQueue } from "./message_queue.ts";

interface PendingRequest {
  readonly cid: CID;
  readonly priority: number;
  /** The block itself is asked for, not only whether it is there. */
  readonly block: boolean;
  /** When: milliseconds of `performance.now`. */
  readonly at: number;
  /** No other block was on its way then: the time to the answer is that of the way. */
  readonly alone: boolean;
  /** An answer is expected. The peer may keep a want that it refused, and send the block later. */
  open: boolean;
}

/** What is known of a block that came: it is asked for, was so until lately, or never was. */
export type Expectation = "asked" | "withdrawn" | "never";

/** Asks of one peer, of any kind, at most: others allow so many. */
const MAX_REQUESTS = 1024;
/** Blocks on their way from one peer, at most, and bytes of them as far as one can tell: the rest may come from others. */
const MAX_BLOCKS_IN_FLIGHT = 512;
const MAX_BYTES_IN_FLIGHT = 8 * 1024 * 1024;
const MAX_CANCELLED = 2048;

/** Milliseconds, and bytes of a block; taken for a peer that has not answered yet. */
const INITIAL_LATENCY_MS = 100;
const INITIAL_MS_PER_BLOCK = 10;
const INITIAL_BLOCK_SIZE = 256 * 1024;

/** Milliseconds of silence that are held against a peer at the earliest, and in any case. */
const MIN_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 30_000;

/** Milliseconds before the same question may be put again. */
const REPEAT_AFTER_MS = 5000;

const blend = (old: number, now: number) => old + (now - old) * 0.25;

export class PendingRequests {
  readonly #queue: MessageQueue;
  readonly #requests = new Map<string, PendingRequest>();
  readonly #cancelled = new Set<string>();
  #blocks = 0;
  #latency = INITIAL_LATENCY_MS;
  #msPerBlock = INITIAL_MS_PER_BLOCK;
  #size = INITIAL_BLOCK_SIZE;
  #lastReceived = 0;

  constructor(link: MessageQueue) {
    this.#queue = link;
  }

  /** One block more may be asked for. */
  get hasRoom(): boolean {
    return (
      this.#blocks < Math.min(MAX_BLOCKS_IN_FLIGHT, MAX_BYTES_IN_FLIGHT / this.#size) &&
      this.#requests.size < MAX_REQUESTS
    );
  }

  /** Milliseconds until a block that is asked for now would be here, as far as one can tell. */
  get expectedMs(): number {
    return this.#latency + (this.#blocks + 1) * this.#msPerBlock;
  }

  /** Asks for a block, or whether it is there; what was asked just now is not asked again. False when there is no room. */
  add(key: string, { cid, priority }: { readonly cid: CID; readonly priority: number }, block: boolean): boolean {
    const before = this.#requests.get(key);
    const at = performance.now();
    if (before?.open && (before.block || !block) && at - before.at < REPEAT_AFTER_MS) return true;
    if (before === undefined && this.#requests.size >= MAX_REQUESTS) return false;
    if (before !== undefined) this.#settle(before);
    const ask: PendingRequest = { cid, priority, block, at, alone: this.#blocks === 0, open: true };
    this.#requests.set(key, ask);
    if (block) this.#blocks += 1;
    this.#queue.addWant(key, entryOf(ask));
    return true;
  }

  /** A block of so many bytes came from this peer. */
  blockReceived(key: string, bytes: number): Expectation {
    const ask = this.#requests.get(key);
    if (ask === undefined) return this.#cancelled.delete(key) ? "withdrawn" : "never";
    const now = performance.now();
    if (ask.open && ask.alone) this.#latency = blend(this.#latency, now - ask.at);
    this.#size = blend(this.#size, bytes);
    this.#msPerBlock = blend(this.#msPerBlock, now - Math.max(ask.at, this.#lastReceived));
    this.#lastReceived = now;
    this.#settle(ask);
    this.#requests.delete(key);
    return "asked";
  }

  /** The peer said whether the block is there. True when that was asked. */
  presenceReceived(key: string, have: boolean): boolean {
    const ask = this.#requests.get(key);
    if (ask === undefined) return false;
    this.#lastReceived = performance.now();
    if (ask.open) this.#latency = blend(this.#latency, this.#lastReceived - ask.at);
    // Who says that it has the block takes the question off its list.
    if (have && !ask.block) this.#requests.delete(key);
    if (!have) this.#settle(ask);
    return true;
  }

  /** Whether the block is on its way, as far as one can tell. */
  awaitsBlock(key: string): boolean {
    const ask = this.#requests.get(key);
    return ask?.block === true && ask.open;
  }

  /** Nobody wants it any more. */
  cancel(key: string): void {
    const ask = this.#requests.get(key);
    if (ask === undefined) return;
    this.#settle(ask);
    this.#requests.delete(key);
    this.#cancelled.add(key);
    if (this.#cancelled.size > MAX_CANCELLED) this.#cancelled.delete(this.#cancelled.values().next().value as string);
    this.#queue.addCancel(key, ask.cid);
  }

  /** Blocks that should have been here by now; from then on they are not expected. `all`: whatever was asked for. */
  takeOverdue(all = false): string[] {
    const now = performance.now();
    const patience = Math.min(MAX_TIMEOUT_MS, Math.max(MIN_TIMEOUT_MS, 4 * (this.#latency + this.#msPerBlock)));
    const late: string[] = [];
    for (const [key, ask] of this.#requests) {
      if (!ask.open || !ask.block) continue;
      if (!all && now - Math.max(ask.at, this.#lastReceived) < patience && now - ask.at < MAX_TIMEOUT_MS) continue;
      this.#settle(ask);
      late.push(key);
    }
    return late;
  }

  /** All that is asked, for a peer that has forgotten it. */
  *entries(): Generator<[key: string, entry: WantlistEntry], void, undefined> {
    for (const [key, ask] of this.#requests) yield [key, entryOf(ask)];
  }

  #settle(ask: PendingRequest): void {
    if (ask.open && ask.block) this.#blocks -= 1;
    ask.open = false;
  }
}

const entryOf = ({ cid, priority, block }: PendingRequest): WantlistEntry => ({
  cid: cid.bytes,
  priority,
  cancel: false,
  have: !block,
  sendDontHave: true,
});
