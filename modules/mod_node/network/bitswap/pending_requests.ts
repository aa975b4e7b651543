/** Tracks the requests to one peer, and how fast it responds. */
import type { CID } from "multiformats/cid";
import type { WantlistEntry } from "./message.ts";

/** Sends requests to the peer. */
export interface RequestQueue {
  addWant(key: string, entry: WantlistEntry): void;
  /** Cancels a want. */
  addCancel(key: string, cid: CID): void;
}

export interface PendingOptions {
  /** Current maximum number of blocks in flight. */
  readonly room?: (() => number) | undefined;
  /** Expected milliseconds until the first response. */
  readonly latencyMs?: number;
}

interface PendingRequest {
  readonly cid: CID;
  readonly priority: number;
  /** Whether the request is a want-block, and not a want-have. */
  readonly block: boolean;
  /** Time of sending, in milliseconds of `performance.now`. */
  readonly at: number;
  /** Number of blocks that were in flight at that time and arrive first. */
  readonly ahead: number;
  /**
   * Whether a response is expected. After a DONT_HAVE the peer may remember the want and send the
   * block later.
   */
  open: boolean;
}

/**
 * Whether an arriving block was requested from the peer, was requested but cancelled, or was never
 * requested.
 */
export type Expectation = "requested" | "withdrawn" | "never";

/**
 * Maximum number of requests to one peer, of both kinds together; implementations store that many.
 */
const MAX_REQUESTS = 1024;
/**
 * Maximum number of blocks and of estimated bytes in flight from one peer; other peers may send the
 * rest. The bytes match the widest stream window, and the blocks nearly match the maximum number of
 * requests.
 */
const MAX_BLOCKS_IN_FLIGHT = 896;
const MAX_BYTES_IN_FLIGHT = 16 * 1024 * 1024;
/** Maximum number of cancelled requests to remember, because their blocks may be in flight. */
const MAX_CANCELLED = 2048;

/** Estimates for a peer that has not responded yet. */
const INITIAL_LATENCY_MS = 100;
const INITIAL_MS_PER_BLOCK = 10;
const INITIAL_BLOCK_SIZE = 256 * 1024;

/** Bounds for the period of silence after which a block is overdue. */
const MIN_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 30_000;

/** Milliseconds after which the same request may be sent again. */
const REPEAT_AFTER_MS = 5000;

const blend = (old: number, now: number) => old + (now - old) * 0.25;

export class PendingRequests {
  readonly #queue: RequestQueue;
  readonly #room: (() => number) | undefined;
  readonly #requests = new Map<string, PendingRequest>();
  readonly #cancelled = new Set<string>();
  #blocks = 0;
  #latency: number;
  /** Whether the latency was measured; otherwise it is a guess. */
  #isMeasured = false;
  #msPerBlock = INITIAL_MS_PER_BLOCK;
  #size = INITIAL_BLOCK_SIZE;
  #lastReceived = 0;

  constructor(queue: RequestQueue, { room, latencyMs = INITIAL_LATENCY_MS }: PendingOptions = {}) {
    this.#queue = queue;
    this.#room = room;
    this.#latency = latencyMs;
  }

  /** Whether another block may be requested. */
  get hasRoom(): boolean {
    return (
      this.#blocks < Math.min(MAX_BLOCKS_IN_FLIGHT, MAX_BYTES_IN_FLIGHT / this.#size) &&
      this.#requests.size < MAX_REQUESTS &&
      (this.#room === undefined || this.#blocks < this.#room())
    );
  }

  /** Records that a block did not arrive within this time. */
  atLeast(milliseconds: number): void {
    this.#msPerBlock = Math.max(this.#msPerBlock, milliseconds);
  }

  /**
   * Halves the estimates after a long time without requests, so that the peer gets another chance.
   */
  forget(): void {
    this.#msPerBlock /= 2;
    this.#latency /= 2;
  }

  /** Estimated milliseconds until a block that is requested now would arrive. */
  get expectedMs(): number {
    return this.#latency + this.#blocks * this.#msPerBlock;
  }

  /**
   * Requests a block, or asks whether the peer has it, unless the same request was sent recently.
   * Returns false if there is no room.
   */
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

  /** Records the arrival of a block of that size from this peer. */
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
    return "requested";
  }

  /** Records a HAVE or DONT_HAVE of the peer. Returns whether it had been requested. */
  presenceReceived(key: string, have: boolean): boolean {
    const request = this.#requests.get(key);
    if (request === undefined) return false;
    this.#lastReceived = performance.now();
    if (request.open) this.#measure(this.#lastReceived - request.at);
    // After sending HAVE, the peer has removed the want-have from its list.
    if (have && !request.block) this.#requests.delete(key);
    if (!have) this.#settle(request);
    return true;
  }

  /** Whether the block is expected from this peer. */
  awaitsBlock(key: string): boolean {
    const request = this.#requests.get(key);
    return request?.block === true && request.open;
  }

  /** Cancels the request of a block. */
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
   * Returns the keys of overdue blocks and stops expecting them.
   *
   * @param all return all requested blocks
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

  /** Yields the whole wantlist, for a peer that has lost it. */
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
