/** Presents one gateway as a source of blocks, with the interface of a peer that speaks bitswap. */
import { CID } from "multiformats/cid";
import type { BlockPeer, SourceReceiver } from "../bitswap/block_peer.ts";
import { cidPrefix, keyOfWireBlock } from "../bitswap/keys.ts";
import { Ledger } from "../bitswap/ledger.ts";
import type { WantlistEntry } from "../bitswap/message.ts";
import { PendingRequests, type RequestQueue } from "../bitswap/pending_requests.ts";
import type { BlockClient, Outcome } from "./block_client.ts";

/** Number of requests by outcome; bytes count the contents of blocks. */
export interface RetrievalCounts {
  block: number;
  present: number;
  absent: number;
  later: number;
  failed: number;
  fault: number;
  /** Requests that were cancelled because another source was faster or no caller waits. */
  withdrawn: number;
  bytes: number;
}

export interface HttpSourceDeps {
  readonly name: string;
  readonly client: BlockClient;
  readonly receiver: SourceReceiver;
  readonly counts: RetrievalCounts;
  /** The maximum number of concurrent requests to all sources, and their current number. */
  readonly workers: { readonly max: number; active: number };
  /** Called when the source is dropped, with the reason and the duration of its ban. */
  readonly onGone: (source: HttpSource, reason: string, banMs: number) => void;
}

interface Running {
  readonly cancel: AbortController;
  readonly since: number;
}

/**
 * Number of concurrent requests to a source that has sent nothing yet; each received block raises
 * it by one.
 */
const FIRST_WINDOW = 2;
/** Timeout for one block, even if its bytes keep trickling in. */
const MAX_REQUEST_MS = 30_000;
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/**
 * Number of consecutive failures, and of misses without any hit, after which the source is dropped.
 */
const MAX_FAILURES = 4;
const MAX_MISSES = 100;
const BAN_OF_FAILING_MS = 60_000;
const BAN_OF_USELESS_MS = 5 * 60_000;
const BAN_OF_FAULTY_MS = 60 * 60_000;
/**
 * Time without requests after which a slow source gets another chance; doubled whenever another
 * source was faster.
 */
const MIN_FORGET_MS = 1000;
const MAX_FORGET_MS = 60_000;

export class HttpSource implements BlockPeer, RequestQueue {
  readonly name: string;
  readonly ledger = new Ledger();
  readonly pending: PendingRequests;
  state: BlockPeer["state"] = "ready";
  readonly #deps: HttpSourceDeps;
  readonly #running = new Map<string, Running>();
  #window = FIRST_WINDOW;
  #hits = 0;
  #misses = 0;
  #failures = 0;
  #pausedUntil = 0;
  #lastAt = performance.now();
  #forgetAfter = MIN_FORGET_MS;

  constructor(deps: HttpSourceDeps) {
    this.#deps = deps;
    this.name = deps.name;
    const { workers } = deps;
    const room = () => (workers.active < workers.max ? this.#window : 0);
    // The speed of a source shows only when it is used, so a new one is tried before sources that
    // have much to send.
    this.pending = new PendingRequests(this, { room, latencyMs: 0 });
  }

  /** Whether requests are in progress. */
  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  addWant(key: string, entry: WantlistEntry): void {
    const { workers } = this.#deps;
    // Asking whether the source has a late block must not delay other requests.
    if (entry.have && workers.active >= workers.max) return;
    this.#running.get(key)?.cancel.abort();
    void this.#request(key, entry);
  }

  addCancel(key: string): void {
    const running = this.#running.get(key);
    if (running === undefined) return;
    this.#running.delete(key);
    this.#deps.counts.withdrawn += 1;
    this.#recordSlowness(performance.now() - running.since);
    running.cancel.abort();
  }

  /** Must be called several times a second while blocks are wanted. */
  tick(now: number): void {
    if (this.state === "resting" && now >= this.#pausedUntil) {
      this.state = "ready";
      this.#deps.receiver.sourceReady(this);
    }
    for (const [key, { since, cancel }] of this.#running) {
      if (now - since < MAX_REQUEST_MS) continue;
      this.#running.delete(key);
      cancel.abort();
      this.#failed("a block takes too long");
    }
    if (this.isBusy || now - this.#lastAt < this.#forgetAfter) return;
    this.#lastAt = now;
    this.pending.forget();
  }

  /** Stops using the source and drops its pending requests. */
  close(): void {
    this.state = "gone";
    this.#deps.receiver.removePeer(this);
    for (const { cancel } of this.#running.values()) cancel.abort();
    this.#running.clear();
    this.#deps.client.close();
  }

  async #request(key: string, { cid: bytes, have }: WantlistEntry): Promise<void> {
    const { client, workers, counts } = this.#deps;
    const running: Running = { cancel: new AbortController(), since: performance.now() };
    const { signal } = running.cancel;
    this.#running.set(key, running);
    this.#lastAt = running.since;
    workers.active += 1;
    const cid = CID.decode(bytes);
    const outcome = await (have ? client.has(cid, signal) : client.get(cid, signal));
    workers.active -= 1;
    // The request was cancelled meanwhile, so its outcome does not count.
    if (this.#running.get(key) !== running) return;
    this.#running.delete(key);
    counts[outcome.kind] += 1;
    await this.#handleOutcome(key, cid, outcome);
  }

  async #handleOutcome(key: string, cid: CID, outcome: Outcome): Promise<void> {
    const { receiver, counts } = this.#deps;
    switch (outcome.kind) {
      case "block": {
        const block = { prefix: cidPrefix(cid), data: outcome.bytes };
        if ((await keyOfWireBlock(block)) !== key) return this.#handleFault(`it sends wrong bytes for ${cid}`);
        counts.bytes += outcome.bytes.length;
        this.#hits += 1;
        this.#failures = 0;
        this.#forgetAfter = MIN_FORGET_MS;
        this.#window = Math.min(this.#deps.workers.max, this.#window + 1);
        await receiver.blocksArrived(this, [block], [key]);
        return;
      }
      case "present":
      case "absent":
        this.#failures = 0;
        this.#misses += outcome.kind === "absent" ? 1 : 0;
        receiver.receivePresences(this, [{ cid: cid.bytes, have: outcome.kind === "present" }]);
        if (this.#hits === 0 && this.#misses >= MAX_MISSES)
          this.#deps.onGone(this, `it had none of ${MAX_MISSES} blocks`, BAN_OF_USELESS_MS);
        return;
      case "later":
        this.#pause(outcome.after);
        return;
      case "failed":
        this.#failed(outcome.reason);
        return;
      case "fault":
        this.#handleFault(outcome.reason);
    }
  }

  /**
   * Records that another source delivered a block that was requested from this source that long
   * ago.
   */
  #recordSlowness(milliseconds: number): void {
    this.pending.atLeast(milliseconds);
    this.#forgetAfter = Math.min(MAX_FORGET_MS, 2 * this.#forgetAfter);
  }

  #handleFault(reason: string): void {
    this.#deps.onGone(this, reason, BAN_OF_FAULTY_MS);
  }

  #failed(reason: string): void {
    this.#failures += 1;
    if (this.#failures >= MAX_FAILURES) this.#deps.onGone(this, reason, BAN_OF_FAILING_MS);
    else this.#pause(undefined);
  }

  /** Pauses the source, twice as long each time; requests in progress continue. */
  #pause(after: number | undefined): void {
    if (this.state !== "ready") return;
    const { receiver } = this.#deps;
    this.state = "resting";
    this.#window = Math.max(1, this.#window >> 1);
    const backoff = MIN_PAUSE_MS * 2 ** this.#failures;
    this.#pausedUntil = performance.now() + Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, after ?? backoff));
    receiver.sourcePaused(this);
  }
}
