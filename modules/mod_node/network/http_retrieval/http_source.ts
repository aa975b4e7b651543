/** One gateway as a source of blocks: it is asked as a peer that speaks bitswap is. */
import { CID } from "multiformats/cid";
import type { BlockPeer, SourceReceiver } from "../bitswap/block_peer.ts";
import { cidPrefix, keyOfWireBlock } from "../bitswap/keys.ts";
import { Ledger } from "../bitswap/ledger.ts";
import type { WantlistEntry } from "../bitswap/message.ts";
import { PendingRequests, type RequestQueue } from "../bitswap/pending_requests.ts";
import type { BlockClient, Outcome } from "./block_client.ts";

/** What came of requests, counted; bytes are those of blocks. */
export interface RetrievalCounts {
  block: number;
  present: number;
  absent: number;
  later: number;
  failed: number;
  fault: number;
  /** Another source was faster, or nobody waits any more. */
  withdrawn: number;
  bytes: number;
}

export interface HttpSourceDeps {
  readonly name: string;
  readonly client: BlockClient;
  readonly receiver: SourceReceiver;
  readonly counts: RetrievalCounts;
  /** Requests that may be under way to all sources, and those that are. */
  readonly workers: { readonly max: number; active: number };
  /** Told why it is used no more, and for how long. */
  readonly gone: (source: HttpSource, reason: string, banMs: number) => void;
}

interface Running {
  readonly cancel: AbortController;
  readonly since: number;
}

/** Blocks that are requested of a source that has sent none; one more with each that comes. */
const FIRST_WINDOW = 2;
/** The longest time for one block, however it trickles. */
const MAX_REQUEST_MS = 30_000;
const MIN_REST_MS = 1000;
const MAX_REST_MS = 60_000;
/** Failures in a row, and misses without a hit, after which it is not asked any more. */
const MAX_FAILURES = 4;
const MAX_MISSES = 100;
const BAN_OF_FAILING_MS = 60_000;
const BAN_OF_USELESS_MS = 5 * 60_000;
const BAN_OF_LIAR_MS = 60 * 60_000;
/** What was slow gets another chance after so long without a request; twice as long each time that others were faster. */
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
  #restsUntil = 0;
  #lastAt = performance.now();
  #forgetAfter = MIN_FORGET_MS;

  constructor(deps: HttpSourceDeps) {
    this.#deps = deps;
    this.name = deps.name;
    const { workers } = deps;
    const room = () => (workers.active < workers.max ? this.#window : 0);
    // How fast it is shows when it is asked: a new one is tried before those that have much to send.
    this.pending = new PendingRequests(this, { room, latencyMs: 0 });
  }

  /** Requests are under way. */
  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  addWant(key: string, entry: WantlistEntry): void {
    const { workers } = this.#deps;
    // Whether it has a block that did not come is asked for as long as that keeps nothing waiting.
    if (entry.have && workers.active >= workers.max) return;
    this.#running.get(key)?.cancel.abort();
    void this.#ask(key, entry);
  }

  addCancel(key: string): void {
    const running = this.#running.get(key);
    if (running === undefined) return;
    this.#running.delete(key);
    this.#deps.counts.withdrawn += 1;
    this.#outrun(performance.now() - running.since);
    running.cancel.abort();
  }

  /** To be called several times a second while blocks are wanted. */
  tick(now: number): void {
    if (this.state === "resting" && now >= this.#restsUntil) {
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

  /** Nothing is asked of it any more; what is under way is dropped. */
  close(): void {
    this.state = "gone";
    this.#deps.receiver.removePeer(this);
    for (const { cancel } of this.#running.values()) cancel.abort();
    this.#running.clear();
    this.#deps.client.close();
  }

  async #ask(key: string, { cid: bytes, have }: WantlistEntry): Promise<void> {
    const { client, workers, counts } = this.#deps;
    const running: Running = { cancel: new AbortController(), since: performance.now() };
    const { signal } = running.cancel;
    this.#running.set(key, running);
    this.#lastAt = running.since;
    workers.active += 1;
    const cid = CID.decode(bytes);
    const outcome = await (have ? client.has(cid, signal) : client.get(cid, signal));
    workers.active -= 1;
    // It was cancelled.
    if (this.#running.get(key) !== running) return;
    this.#running.delete(key);
    counts[outcome.kind] += 1;
    await this.#answered(key, cid, outcome);
  }

  async #answered(key: string, cid: CID, outcome: Outcome): Promise<void> {
    const { receiver, counts } = this.#deps;
    switch (outcome.kind) {
      case "block": {
        const block = { prefix: cidPrefix(cid), data: outcome.bytes };
        if ((await keyOfWireBlock(block)) !== key) return this.#lied(`it sends other bytes for ${cid}`);
        counts.bytes += outcome.bytes.length;
        this.#hits += 1;
        this.#failures = 0;
        this.#forgetAfter = MIN_FORGET_MS;
        this.#window = Math.min(this.#deps.workers.max, this.#window + 1);
        await receiver.blocksCame(this, [block], [key]);
        return;
      }
      case "present":
      case "absent":
        this.#failures = 0;
        this.#misses += outcome.kind === "absent" ? 1 : 0;
        receiver.receivePresences(this, [{ cid: cid.bytes, have: outcome.kind === "present" }]);
        if (this.#hits === 0 && this.#misses >= MAX_MISSES)
          this.#deps.gone(this, `it had none of ${MAX_MISSES} blocks`, BAN_OF_USELESS_MS);
        return;
      case "later":
        this.#rest(outcome.after);
        return;
      case "failed":
        this.#failed(outcome.reason);
        return;
      case "fault":
        this.#lied(outcome.reason);
    }
  }

  /** Another source sent what was requested of this one so long ago. */
  #outrun(milliseconds: number): void {
    this.pending.atLeast(milliseconds);
    this.#forgetAfter = Math.min(MAX_FORGET_MS, 2 * this.#forgetAfter);
  }

  #lied(reason: string): void {
    this.#deps.gone(this, reason, BAN_OF_LIAR_MS);
  }

  #failed(reason: string): void {
    this.#failures += 1;
    if (this.#failures >= MAX_FAILURES) this.#deps.gone(this, reason, BAN_OF_FAILING_MS);
    else this.#rest(undefined);
  }

  /** Asks for nothing for a while, twice as long each time; what is under way goes on. */
  #rest(after: number | undefined): void {
    if (this.state !== "ready") return;
    const { receiver } = this.#deps;
    this.state = "resting";
    this.#window = Math.max(1, this.#window >> 1);
    const backoff = MIN_REST_MS * 2 ** this.#failures;
    this.#restsUntil = performance.now() + Math.min(MAX_REST_MS, Math.max(MIN_REST_MS, after ?? backoff));
    receiver.sourceRests(this);
  }
}
