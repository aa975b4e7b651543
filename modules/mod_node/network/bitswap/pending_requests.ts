/** What one peer is asked for, and how fast it answers. */
import type { CID } from "multiformats/cid";
import type { WantlistEntry } from "./message.ts";

/** What carries requests to the peer. */
export interface RequestQueue {
  addWant(key: string, entry: WantlistEntry): void;
  /** Takes a want back. */
  addCancel(key: string, cid: CID): void;
}

export interface PendingOptions {
  /** Blocks that may be on their way now. */
  readonly room?: (() => number) | undefined;
  /** Milliseconds that the first answer is expected to take. */
  readonly latencyMs?: number;
}

interface PendingRequest {
  readonly cid: CID;
  readonly priority: number;
  /** want-block, not want-have. */
  readonly block: boolean;
  /** When it was sent: milliseconds of `performance.now`. */
  readonly at: number;
  /** Blocks that were on their way then, which come first. */
  readonly ahead: number;
  /** An answer is expected. After a DONT_HAVE the peer may keep the want, and send the block later. */
  open: boolean;
}

/** Whether a block that arrived was requested of the peer: it is, it was until it was cancelled, or it never was. */
export type Expectation = "asked" | "withdrawn" | "never";

/** Requests of one peer, of either kind: implementations keep as many. */
const MAX_REQUESTS = 1024;
/**
 * Blocks and estimated bytes on their way from one peer: the rest may come from others. As many bytes as the widest window of a
 * stream lets it send, and of small blocks nearly as many as it may be asked for.
 */
const MAX_BLOCKS_IN_FLIGHT = 896;
const MAX_BYTES_IN_FLIGHT = 16 * 1024 * 1024;
/** Cancelled requests that are remembered: their blocks may be on their way. */
const MAX_CANCELLED = 2048;

/** Estimates for a peer that has not answered yet. */
const INITIAL_LATENCY_MS = 100;
const INITIAL_MS_PER_BLOCK = 10;
const INITIAL_BLOCK_SIZE = 256 * 1024;

/** Bounds for the silence after which a block is overdue. */
const MIN_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 30_000;

/** Milliseconds before the same request may be sent again. */
const REPEAT_AFTER_MS = 5000;

const blend = (old: number, now: number) => old + (now - old) * 0.25;

export class PendingRequests {
  readonly #queue: RequestQueue;
  readonly #room: (() => number) | undefined;
  readonly #requests = new Map<string, PendingRequest>();
  readonly #cancelled = new Set<string>();
  #blocks = 0;
  #latency: number;
  /** It is measured, and no longer a guess. */
  #isMeasured = false;
  #msPerBlock = INITIAL_MS_PER_BLOCK;
  #size = INITIAL_BLOCK_SIZE;
  #lastReceived = 0;

  constructor(queue: RequestQueue, { room, latencyMs = INITIAL_LATENCY_MS }: PendingOptions = {}) {
    this.#queue = queue;
    this.#room = room;
    this.#latency = latencyMs;
  }

  /** One block more may be requested. */
  get hasRoom(): boolean {
    return (
      this.#blocks < Math.min(MAX_BLOCKS_IN_FLIGHT, MAX_BYTES_IN_FLIGHT / this.#size) &&
      this.#requests.size < MAX_REQUESTS &&
      (this.#room === undefined || this.#blocks < this.#room())
    );
  }

  /** A block took at least so long, and did not come. */
  atLeast(milliseconds: number): void {
    this.#msPerBlock = Math.max(this.#msPerBlock, milliseconds);
  }

  /** What is expected was long ago: half of it, so that the peer gets another chance. */
  forget(): void {
    this.#msPerBlock /= 2;
    this.#latency /= 2;
  }

  /** Estimated milliseconds until a block that is requested now would arrive. */
  get expectedMs(): number {
    return this.#latency + this.#blocks * this.#msPerBlock;
  }

  /** Requests a block, or asks whether the peer has it, unless that was done just now. False when there is no room. */
  add(key: string, { cid, priority }: { readonly cid: CID; readonly priority: number }, block: boolean): boolean {
    const before = this.#requests.get(key);
    const at = performance.now();
    if (before?.open && (before.block || !block) && at - before.at < REPEAT_AFTER_MS) return true;
    if (before === undefined && this.#requests.size >= MAX_REQUESTS) return false;
    if (before !== undefined) this.#settle(before);
    const request: PendingRequest = { cid, priority, block, at, ahead: this.#blocks, open: true };
    this.#requests.set(key, request);
    if (block) this.#blocks += 1;
    this.#queue.addWant(key, entryOf(request));
    return true;
  }

  /** A block of so many bytes arrived from this peer. */
  blockReceived(key: string, bytes: number): Expectation {
    const request = this.#requests.get(key);
    if (request === undefined) return this.#cancelled.delete(key) ? "withdrawn" : "never";
    const now = performance.now();
    if (request.open) this.#measure(Math.max(0, now - request.at - request.ahead * this.#msPerBlock));
    this.#size = blend(this.#size, bytes);
    this.#msPerBlock = blend(this.#msPerBlock, now - Math.max(request.at, this.#lastReceived));
    this.#lastReceived = now;
    this.#settle(request);
    this.#requests.delete(key);
    return "asked";
  }

  /** The peer sent HAVE or DONT_HAVE. True when it had been asked. */
  presenceReceived(key: string, have: boolean): boolean {
    const request = this.#requests.get(key);
    if (request === undefined) return false;
    this.#lastReceived = performance.now();
    if (request.open) this.#measure(this.#lastReceived - request.at);
    // A peer that answered HAVE has removed the want-have from its list.
    if (have && !request.block) this.#requests.delete(key);
    if (!have) this.#settle(request);
    return true;
  }

  /** The block is expected from this peer. */
  awaitsBlock(key: string): boolean {
    const request = this.#requests.get(key);
    return request?.block === true && request.open;
  }

  /** The block is wanted no more. */
  cancel(key: string): void {
    const request = this.#requests.get(key);
    if (request === undefined) return;
    this.#settle(request);
    this.#requests.delete(key);
    this.#cancelled.add(key);
    if (this.#cancelled.size > MAX_CANCELLED) this.#cancelled.delete(this.#cancelled.values().next().value as string);
    this.#queue.addCancel(key, request.cid);
  }

  /**
   * Keys of blocks that should have arrived, which from now on are not expected.
   *
   * @param all of every requested block
   */
  takeOverdue(all = false): string[] {
    const now = performance.now();
    const timeout = Math.min(MAX_TIMEOUT_MS, Math.max(MIN_TIMEOUT_MS, 4 * (this.#latency + this.#msPerBlock)));
    const overdue: string[] = [];
    for (const [key, request] of this.#requests) {
      if (!request.open || !request.block) continue;
      const silence = now - Math.max(request.at, this.#lastReceived);
      if (!all && silence < timeout && now - request.at < MAX_TIMEOUT_MS) continue;
      this.#settle(request);
      overdue.push(key);
    }
    return overdue;
  }

  /** The whole wantlist, for a peer that has lost it. */
  *entries(): Generator<[key: string, entry: WantlistEntry], void, undefined> {
    for (const [key, request] of this.#requests) yield [key, entryOf(request)];
  }

  #measure(milliseconds: number): void {
    this.#latency = this.#isMeasured ? blend(this.#latency, milliseconds) : milliseconds;
    this.#isMeasured = true;
  }

  #settle(request: PendingRequest): void {
    if (request.open && request.block) this.#blocks -= 1;
    request.open = false;
  }
}

const entryOf = ({ cid, priority, block }: PendingRequest): WantlistEntry => ({
  cid: cid.bytes,
  priority,
  cancel: false,
  have: !block,
  sendDontHave: true,
});
