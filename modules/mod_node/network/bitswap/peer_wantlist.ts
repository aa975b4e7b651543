/** The blocks that one peer wants from this node. */
import type { CID } from "multiformats/cid";

export interface PeerWant {
  readonly key: string;
  readonly cid: CID;
  priority: number;
  /** Whether the want is a want-block, and not a want-have. */
  wantBlock: boolean;
  sendDontHave: boolean;
  /** Size of the block in bytes; undefined while it is not known to be stored. */
  size: number | undefined;
  state: "waiting" | "ready" | "sending";
}

export class PeerWantlist {
  readonly #wants = new Map<string, PeerWant>();
  /** Waiting wants whose lookup in the store has not begun. */
  readonly #unchecked = new Set<PeerWant>();
  /** Sorted by priority while `#sorted` is true. */
  #ready = new Set<PeerWant>();
  #sorted = true;
  /** The lowest priority in `#ready` while it is sorted. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Total bytes of the blocks that are ready. */
  pendingBytes = 0;
  /** Whether a lookup in the store is in progress. */
  isLookingUp = false;
  /** Whether blocks are being sent. */
  isSending = false;
  /** Whether the peer received the last message quickly. */
  isQuick = false;

  get size(): number {
    return this.#wants.size;
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  get(key: string): PeerWant | undefined {
    return this.#wants.get(key);
  }

  add(want: PeerWant): void {
    this.#wants.set(want.key, want);
  }

  remove(want: PeerWant): void {
    if (this.#wants.get(want.key) !== want) return;
    this.#wants.delete(want.key);
    this.#unchecked.delete(want);
    if (this.#ready.delete(want)) this.pendingBytes -= want.size ?? 0;
  }

  clear(): void {
    this.#wants.clear();
    this.#unchecked.clear();
    this.#ready.clear();
    this.pendingBytes = 0;
  }

  /** Marks a want whose block has to be looked up in the store. */
  markUnchecked(want: PeerWant): void {
    this.#unchecked.add(want);
  }

  /** Removes and returns up to `max` wants whose block has to be looked up. */
  takeUnchecked(max: number): PeerWant[] {
    const taken = [...this.#unchecked.values().take(max)];
    for (const want of taken) this.#unchecked.delete(want);
    return taken;
  }

  /** Updates a want that the peer has sent again. */
  update(want: PeerWant, changed: Pick<PeerWant, "priority" | "wantBlock" | "sendDontHave">): void {
    const { priority, wantBlock, sendDontHave } = changed;
    if (want.state === "ready" && priority !== want.priority) this.#sorted = false;
    want.priority = priority;
    // A want-have does not cancel a want-block.
    want.wantBlock ||= wantBlock;
    want.sendDontHave = sendDontHave;
  }

  /** Marks a want whose block is stored and should be sent. */
  markReady(want: PeerWant, size: number): void {
    want.size = size;
    want.state = "ready";
    this.pendingBytes += size;
    this.#sorted = this.#ready.size === 0 || (this.#sorted && want.priority <= this.#lowest);
    this.#lowest = want.priority;
    this.#ready.add(want);
  }

  /**
   * Removes and returns the wants to send next, by priority: at least one, and otherwise at most
   * the given number of bytes.
   */
  takeReady(bytes: number): PeerWant[] {
    if (!this.#sorted) this.#sort();
    const taken: PeerWant[] = [];
    let sum = 0;
    for (const want of this.#ready) {
      const { size = 0 } = want;
      if (taken.length > 0 && sum + size > bytes) break;
      sum += size;
      want.state = "sending";
      this.#ready.delete(want);
      taken.push(want);
    }
    this.pendingBytes -= sum;
    return taken;
  }

  #sort(): void {
    const sorted = [...this.#ready].sort((one, other) => other.priority - one.priority);
    this.#ready = new Set(sorted);
    this.#sorted = true;
    this.#lowest = sorted.at(-1)?.priority ?? this.#lowest;
  }

  keys(): Iterable<string> {
    return this.#wants.keys();
  }

  list(): CID[] {
    return [...this.#wants.values()].map(({ cid }) => cid);
  }
}
