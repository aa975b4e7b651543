/** What one peer wants of this node. */
import type { CID } from "multiformats/cid";

export interface PeerWant {
  readonly key: string;
  readonly cid: CID;
  priority: number;
  /** want-block, not want-have. */
  wantBlock: boolean;
  sendDontHave: boolean;
  /** Bytes of the block; undefined while it is not known to be here. */
  size: number | undefined;
  state: "waiting" | "ready" | "sending";
}

export class PeerWantlist {
  readonly #wants = new Map<string, PeerWant>();
  /** Waiting wants that the store has not been asked for. */
  readonly #unchecked = new Set<PeerWant>();
  /** In order of priority while they are sorted. */
  #ready = new Set<PeerWant>();
  #sorted = true;
  /** The lowest priority while they are sorted. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Bytes of the blocks that are ready. */
  pendingBytes = 0;
  /** The store is being asked. */
  isLookingUp = false;
  /** Blocks are being sent. */
  isSending = false;
  /** The peer has taken the last message quickly. */
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

  /** The store is to be asked whether the block is here. */
  markUnchecked(want: PeerWant): void {
    this.#unchecked.add(want);
  }

  /** Takes up to `max` wants that the store is to be asked for. */
  takeUnchecked(max: number): PeerWant[] {
    const taken = [...this.#unchecked.values().take(max)];
    for (const want of taken) this.#unchecked.delete(want);
    return taken;
  }

  /** The peer has sent the want again. */
  update(want: PeerWant, changed: Pick<PeerWant, "priority" | "wantBlock" | "sendDontHave">): void {
    const { priority, wantBlock, sendDontHave } = changed;
    if (want.state === "ready" && priority !== want.priority) this.#sorted = false;
    want.priority = priority;
    // A want-have does not take a want-block back.
    want.wantBlock ||= wantBlock;
    want.sendDontHave = sendDontHave;
  }

  /** The block is here and is to be sent. */
  markReady(want: PeerWant, size: number): void {
    want.size = size;
    want.state = "ready";
    this.pendingBytes += size;
    this.#sorted = this.#ready.size === 0 || (this.#sorted && want.priority <= this.#lowest);
    this.#lowest = want.priority;
    this.#ready.add(want);
  }

  /** Takes the wants to be sent next, by priority: at least one, and no more than so many bytes. */
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
