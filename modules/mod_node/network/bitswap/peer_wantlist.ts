/** What one peer wants of us. */
import type { CID } from "multiformats/cid";

export interface Order {
  readonly key: string;
  readonly cid: CID;
  priority: number;
  /** The block is wanted, not only whether it is there. */
  block: boolean;
  tellMissing: boolean;
  /** Length of the block in bytes; undefined while it is not known to be here. */
  size: number | undefined;
  state: "waiting" | "ready" | "sending";
}

export class Orders {
  readonly #orders = new Map<string, Order>();
  /** Of those that wait, the ones to be looked for. */
  readonly #sought = new Set<Order>();
  /** The most urgent first while they are sorted. */
  #ready = new Set<Order>();
  #sorted = true;
  /** While they are sorted, none has a lower priority. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Bytes of the blocks that are ready. */
  pending = 0;
  /** Somebody looks for them. */
  looked = false;
  /** Somebody sends them. */
  served = false;

  get size(): number {
    return this.#orders.size;
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  get(key: string): Order | undefined {
    return this.#orders.get(key);
  }

  add(order: Order): void {
    this.#orders.set(order.key, order);
  }

  remove(order: Order): void {
    if (this.#orders.get(order.key) !== order) return;
    this.#orders.delete(order.key);
    this.#sought.delete(order);
    if (this.#ready.delete(order)) this.pending -= order.size ?? 0;
  }

  clear(): void {
    this.#orders.clear();
    this.#sought.clear();
    this.#ready.clear();
    this.pending = 0;
  }

  /** It is not known whether the block is here. */
  seek(order: Order): void {
    this.#sought.add(order);
  }

  /** The next to be looked for, no more than so many. */
  sought(most: number): Order[] {
    const some = [...this.#sought.values().take(most)];
    for (const order of some) this.#sought.delete(order);
    return some;
  }

  /** The peer has said anew what it wants. */
  renew(order: Order, { priority, block, tellMissing }: Pick<Order, "priority" | "block" | "tellMissing">): void {
    if (order.state === "ready" && priority !== order.priority) this.#sorted = false;
    order.priority = priority;
    // A want for the block is not taken back by a mere question.
    order.block ||= block;
    order.tellMissing = tellMissing;
  }

  /** The block is here and is to be sent. */
  ready(order: Order, size: number): void {
    order.size = size;
    order.state = "ready";
    this.pending += size;
    this.#sorted = this.#ready.size === 0 || (this.#sorted && order.priority <= this.#lowest);
    this.#lowest = order.priority;
    this.#ready.add(order);
  }

  /** The next to be sent, the most urgent first: one, or as many as have no more than so many bytes together. */
  take(bytes: number): Order[] {
    if (!this.#sorted) this.#sort();
    const taken: Order[] = [];
    let sum = 0;
    for (const order of this.#ready) {
      const { size = 0 } = order;
      if (taken.length > 0 && sum + size > bytes) break;
      sum += size;
      order.state = "sending";
      this.#ready.delete(order);
      taken.push(order);
    }
    this.pending -= sum;
    return taken;
  }

  #sort(): void {
    const sorted = [...this.#ready].sort((one, other) => other.priority - one.priority);
    this.#ready = new Set(sorted);
    this.#sorted = true;
    this.#lowest = sorted.at(-1)?.priority ?? this.#lowest;
  }

  keys(): Iterable<string> {
    return this.#orders.keys();
  }

  list(): CID[] {
    return [...this.#orders.values()].map(({ cid }) => cid);
  }
}
