/** What one peer wants of us. */
import type { CID } from "multiformats/cid";

export interface PeerWant {
  readonly key: string;
  readonly cid: CID;
  priority: number;
  /** The block is wanted, not only whether it is there. */
  wantBlock: boolean;
  sendDontHave: boolean;
  /** Length of the block in bytes; undefined while it is not known to be here. */
  size: number | undefined;
  state: "waiting" | "ready" | "sending";
}

export class PeerWantlist {
  readonly #wants = new Map<string, PeerWant>();
  /** Of those that wait, the ones to be looked for. */
  readonly #unchecked = new Set<PeerWant>();
  /** The most urgent first while they are sorted. */
  #ready = new Set<PeerWant>();
  #sorted = true;
  /** While they are sorted, none has a lower priority. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Bytes of the blocks that are ready. */
  pendingBytes = 0;
  /** Somebody looks for them. */
  isLookingUp = false;
  /** Somebody sends them. */
  isSending = false;

  get size(): number {
    return this.#wants.size;
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  get(key: string): PeerWant | undefined {
    return this.#wants.get(key);
  }

  add(order: PeerWant): void {
    this.#wants.set(order.key, order);
  }

  remove(order: PeerWant): void {
    if (this.#wants.get(order.key) !== order) return;
    this.#wants.delete(order.key);
    this.#unchecked.delete(order);
    if (this.#ready.delete(order)) this.pendingBytes -= order.size ?? 0;
  }

  clear(): void {
    this.#wants.clear();
    this.#unchecked.clear();
    this.#ready.clear();
    this.pendingBytes = 0;
  }

  /** It is not known whether the block is here. */
  markUnchecked(order: PeerWant): void {
    this.#unchecked.add(order);
  }

  /** The next to be looked for, no more than so many. */
  takeUnchecked(most: number): PeerWant[] {
    const some = [...this.#unchecked.values().take(most)];
    for (const order of some) this.#unchecked.delete(order);
    return some;
  }

  /** The peer has said anew what it wants. */
  update(
    order: PeerWant,
    { priority, wantBlock, sendDontHave }: Pick<PeerWant, "priority" | "wantBlock" | "sendDontHave">,
  ): void {
    if (order.state === "ready" && priority !== order.priority) this.#sorted = false;
    order.priority = priority;
    // A want for the block is not taken back by a mere question.
    order.wantBlock ||= wantBlock;
    order.sendDontHave = sendDontHave;
  }

  /** The block is here and is to be sent. */
  markReady(order: PeerWant, size: number): void {
    order.size = size;
    order.state = "ready";
    this.pendingBytes += size;
    this.#sorted = this.#ready.size === 0 || (this.#sorted && order.priority <= this.#lowest);
    this.#lowest = order.priority;
    this.#ready.add(order);
  }

  /** The next to be sent, the most urgent first: one, or as many as have no more than so many bytes together. */
  takeReady(bytes: number): PeerWant[] {
    if (!this.#sorted) this.#sort();
    const taken: PeerWant[] = [];
    let sum = 0;
    for (const order of this.#ready) {
      const { size = 0 } = order;
      if (taken.length > 0 && sum + size > bytes) break;
      sum += size;
      order.state = "sending";
      this.#ready.delete(order);
      taken.push(order);
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
