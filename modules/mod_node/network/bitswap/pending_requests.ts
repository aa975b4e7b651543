/** What one peer is asked for, and how fast it answers. */
import type { CID } from "multiformats/cid";
import type { Entry } from "./message.ts";
import type { Link } from "./message_queue.ts";

interface Ask {
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
const mostAsks = 1024;
/** Blocks on their way from one peer, at most, and bytes of them as far as one can tell: the rest may come from others. */
const mostBlocks = 512;
const mostBytes = 8 * 1024 * 1024;
const mostWithdrawn = 2048;

/** Milliseconds, and bytes of a block; taken for a peer that has not answered yet. */
const firstLatency = 100;
const firstPace = 10;
const firstSize = 256 * 1024;

/** Milliseconds of silence that are held against a peer at the earliest, and in any case. */
const shortestWait = 1000;
const longestWait = 30_000;

/** Milliseconds before the same question may be put again. */
const askedAnewAfter = 5000;

const blend = (old: number, now: number) => old + (now - old) * 0.25;

export class Asks {
  readonly #link: Link;
  readonly #asks = new Map<string, Ask>();
  readonly #withdrawn = new Set<string>();
  #blocks = 0;
  #latency = firstLatency;
  #pace = firstPace;
  #size = firstSize;
  #heard = 0;

  constructor(link: Link) {
    this.#link = link;
  }

  /** One block more may be asked for. */
  get hasRoom(): boolean {
    return this.#blocks < Math.min(mostBlocks, mostBytes / this.#size) && this.#asks.size < mostAsks;
  }

  /** Milliseconds until a block that is asked for now would be here, as far as one can tell. */
  get expected(): number {
    return this.#latency + (this.#blocks + 1) * this.#pace;
  }

  /** Asks for a block, or whether it is there; what was asked just now is not asked again. False when there is no room. */
  ask(key: string, { cid, priority }: { readonly cid: CID; readonly priority: number }, block: boolean): boolean {
    const before = this.#asks.get(key);
    const at = performance.now();
    if (before?.open && (before.block || !block) && at - before.at < askedAnewAfter) return true;
    if (before === undefined && this.#asks.size >= mostAsks) return false;
    if (before !== undefined) this.#close(before);
    const ask: Ask = { cid, priority, block, at, alone: this.#blocks === 0, open: true };
    this.#asks.set(key, ask);
    if (block) this.#blocks += 1;
    this.#link.want(key, entryOf(ask));
    return true;
  }

  /** A block of so many bytes came from this peer. */
  arrived(key: string, bytes: number): Expectation {
    const ask = this.#asks.get(key);
    if (ask === undefined) return this.#withdrawn.delete(key) ? "withdrawn" : "never";
    const now = performance.now();
    if (ask.open && ask.alone) this.#latency = blend(this.#latency, now - ask.at);
    this.#size = blend(this.#size, bytes);
    this.#pace = blend(this.#pace, now - Math.max(ask.at, this.#heard));
    this.#heard = now;
    this.#close(ask);
    this.#asks.delete(key);
    return "asked";
  }

  /** The peer said whether the block is there. True when that was asked. */
  told(key: string, have: boolean): boolean {
    const ask = this.#asks.get(key);
    if (ask === undefined) return false;
    this.#heard = performance.now();
    if (ask.open) this.#latency = blend(this.#latency, this.#heard - ask.at);
    // Who says that it has the block takes the question off its list.
    if (have && !ask.block) this.#asks.delete(key);
    if (!have) this.#close(ask);
    return true;
  }

  /** Whether the block is on its way, as far as one can tell. */
  awaits(key: string): boolean {
    const ask = this.#asks.get(key);
    return ask?.block === true && ask.open;
  }

  /** Nobody wants it any more. */
  withdraw(key: string): void {
    const ask = this.#asks.get(key);
    if (ask === undefined) return;
    this.#close(ask);
    this.#asks.delete(key);
    this.#withdrawn.add(key);
    if (this.#withdrawn.size > mostWithdrawn) this.#withdrawn.delete(this.#withdrawn.values().next().value as string);
    this.#link.cancel(key, ask.cid);
  }

  /** Blocks that should have been here by now; from then on they are not expected. `all`: whatever was asked for. */
  overdue(all = false): string[] {
    const now = performance.now();
    const patience = Math.min(longestWait, Math.max(shortestWait, 4 * (this.#latency + this.#pace)));
    const late: string[] = [];
    for (const [key, ask] of this.#asks) {
      if (!ask.open || !ask.block) continue;
      if (!all && now - Math.max(ask.at, this.#heard) < patience && now - ask.at < longestWait) continue;
      this.#close(ask);
      late.push(key);
    }
    return late;
  }

  /** All that is asked, for a peer that has forgotten it. */
  *entries(): Generator<[key: string, entry: Entry], void, undefined> {
    for (const [key, ask] of this.#asks) yield [key, entryOf(ask)];
  }

  #close(ask: Ask): void {
    if (ask.open && ask.block) this.#blocks -= 1;
    ask.open = false;
  }
}

const entryOf = ({ cid, priority, block }: Ask): Entry => ({
  cid: cid.bytes,
  priority,
  cancel: false,
  have: !block,
  tellMissing: true,
});
