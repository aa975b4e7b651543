/** Blocks for others: each gets a message in turn, and no more is read from the store than they take. */
import type { CID } from "multiformats/cid";
import type { Blocks } from "../../storage/blockstore/blocks.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { Budget } from "../../util/async/weighted_semaphore.ts";
import type { NodeLog } from "../../util/log.ts";
import type { Partner } from "./bitswap_peer.ts";
import { keyOf, keyOfCid, ownCid } from "./keys.ts";
import { longestBlock, type Received } from "./message.ts";
import { type Order, Orders } from "./peer_wantlist.ts";

/** What went out, in blocks and bytes, and what was not taken. */
export interface Outgo {
  blocks: number;
  bytes: number;
  /** Wants beyond the bounds. */
  refused: number;
}

export interface ServingOptions {
  /** Wants that are kept for one peer. */
  readonly mostOrders?: number;
  /** Bytes of blocks that are on their way to all peers together. */
  readonly budgetBytes?: number;
}

/** Bytes of blocks in one message; a longer block goes alone. */
const messageBytes = 512 * 1024;
/** Messages with blocks that are on their way to one peer, while half of the room for all is left; else it is one. */
const mostMessages = 2;
/** Blocks of one peer that the store is asked for at a time. */
const mostLooked = 256;
/** A block no longer than that is sent to who asks only whether it is there. */
const sentAtOnce = 1024;

export class Serving {
  readonly outgo: Outgo = { blocks: 0, bytes: 0, refused: 0 };
  readonly #blocks: Blocks;
  readonly #log: NodeLog;
  readonly #mostOrders: number;
  readonly #budget: Budget;
  readonly #orders = new Map<Partner, Orders>();
  /** Who waits for what is not known to be here. */
  readonly #missing = new Map<string, Set<Partner>>();

  constructor(blocks: Blocks, log: NodeLog, options: ServingOptions = {}) {
    this.#blocks = blocks;
    this.#log = log;
    this.#mostOrders = options.mostOrders ?? 4096;
    this.#budget = new Budget(options.budgetBytes ?? 64 * 1024 * 1024);
  }

  /** Others wait for the room that blocks on their way take. */
  get isShort(): boolean {
    return this.#budget.isShort;
  }

  join(partner: Partner): void {
    this.#orders.set(partner, new Orders());
  }

  leave(partner: Partner): void {
    this.#clear(partner);
    this.#orders.delete(partner);
  }

  /** What was on the way to a peer is lost: it says anew what it wants. */
  broken(partner: Partner): void {
    this.#clear(partner);
  }

  /** What a peer wants. */
  wantlist(partner: Partner): CID[] {
    return this.#orders.get(partner)?.list() ?? [];
  }

  /** Takes the wants of a message. @throws Error at bytes that are no CID */
  receive(partner: Partner, { full, entries, leftOut }: Received): void {
    const orders = this.#orders.get(partner);
    if (orders === undefined) return;
    if (full) this.#clear(partner);
    this.outgo.refused += leftOut;
    for (const { cid, cancel, priority, have, tellMissing } of entries) {
      const key = keyOfCid(cid);
      const known = orders.get(key);
      if (cancel) {
        if (known !== undefined) this.#remove(partner, orders, known);
      } else if (known !== undefined) {
        orders.renew(known, { priority, block: !have, tellMissing });
        if (known.state === "waiting") this.#seek(partner, orders, known);
      } else if (orders.size >= this.#mostOrders) {
        this.outgo.refused += 1;
        if (tellMissing) partner.link.tell(key, { cid: cid.slice(), have: false });
      } else {
        const [size, state] = [undefined, "waiting"] as const;
        const order: Order = { key, cid: ownCid(cid), priority, block: !have, tellMissing, size, state };
        orders.add(order);
        this.#await(partner, key);
        this.#seek(partner, orders, order);
      }
    }
  }

  /** Blocks came: whoever waits for them gets them. */
  here(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#missing.size === 0) return;
    for (const { cid } of blocks) {
      const key = keyOf(cid);
      for (const partner of this.#missing.get(key) ?? []) {
        const orders = this.#orders.get(partner);
        const order = orders?.get(key);
        if (orders !== undefined && order?.state === "waiting") this.#seek(partner, orders, order);
      }
    }
  }

  #seek(partner: Partner, orders: Orders, order: Order): void {
    orders.seek(order);
    if (!orders.looked) void this.#look(partner, orders);
  }

  /** However much a peer asks, and however often, the store is asked for no more than a page at a time. */
  async #look(partner: Partner, orders: Orders): Promise<void> {
    orders.looked = true;
    // What one message asks for goes together.
    await undefined;
    for (let page = orders.sought(mostLooked); page.length > 0; page = orders.sought(mostLooked)) {
      const sizes = await Promise.all(page.map(({ cid }) => this.#blocks.size(cid).catch(() => undefined)));
      this.#answer(partner, orders, page, sizes);
      if (orders.hasReady) void this.#serve(partner, orders);
    }
    orders.looked = false;
  }

  /** Answers for what is here and what is not. */
  #answer(partner: Partner, orders: Orders, page: readonly Order[], sizes: readonly (number | undefined)[]): void {
    for (const [at, order] of page.entries()) {
      if (orders.get(order.key) !== order || order.state !== "waiting") continue;
      const size = sizes[at];
      if (size === undefined || size > longestBlock) lack(partner, order);
      else if (order.block || size <= sentAtOnce) {
        this.#found(partner, order.key);
        orders.ready(order, size);
      } else {
        this.#remove(partner, orders, order);
        partner.link.tell(order.key, { cid: order.cid.bytes, have: true });
      }
    }
  }

  /** The peer gets it if it comes. */
  #await(partner: Partner, key: string): void {
    const waiting = this.#missing.get(key);
    if (waiting === undefined) this.#missing.set(key, new Set([partner]));
    else waiting.add(partner);
  }

  #found(partner: Partner, key: string): void {
    const waiting = this.#missing.get(key);
    if (waiting?.delete(partner) && waiting.size === 0) this.#missing.delete(key);
  }

  #remove(partner: Partner, orders: Orders, order: Order): void {
    orders.remove(order);
    this.#found(partner, order.key);
  }

  #clear(partner: Partner): void {
    const orders = this.#orders.get(partner);
    if (orders === undefined) return;
    for (const key of orders.keys()) this.#found(partner, key);
    orders.clear();
  }

  /** Reads the next message while the one before is on its way, if there is room. */
  async #serve(partner: Partner, orders: Orders): Promise<void> {
    if (orders.served) return;
    orders.served = true;
    const sending: Promise<void>[] = [];
    try {
      while (orders.hasReady || sending.length > 0) {
        const most = this.#budget.isAmple ? mostMessages : 1;
        if (orders.hasReady && sending.length < most) sending.push((await this.#send(partner, orders)).sent);
        else await sending.shift();
      }
    } catch (reason) {
      // The link has told of it: what this peer wants is void.
      await Promise.allSettled(sending);
      this.#log.write("bitswap", "debug", `sending to ${partner.name}: ${reason}`);
    } finally {
      orders.served = false;
    }
    if (orders.hasReady) void this.#serve(partner, orders);
  }

  /** Reads the blocks of a message; `sent` is when the peer has taken them. */
  async #send(partner: Partner, orders: Orders): Promise<{ readonly sent: Promise<void> }> {
    const taken = orders.take(messageBytes);
    const bytes = taken.reduce((sum, { size = 0 }) => sum + size, 0);
    await this.#budget.take(bytes);
    const found = await Promise.all(taken.map(({ cid }) => this.#read(cid)));
    const blocks: Block[] = [];
    for (const [at, order] of taken.entries()) {
      const data = found[at];
      if (data !== undefined) blocks.push({ cid: order.cid, bytes: data });
      else if (orders.get(order.key) === order) {
        order.state = "waiting";
        this.#await(partner, order.key);
        lack(partner, order);
      }
    }
    const sent = partner.link.deliver(blocks, orders.pending).then(() => {
      for (const { bytes: data } of blocks) this.#count(partner, data.length);
      for (const order of taken) if (order.state === "sending") orders.remove(order);
    });
    const given = sent.finally(() => this.#budget.give(bytes));
    given.catch(() => {});
    return { sent: given };
  }

  /** What was removed since it was asked for, or is damaged, is not here. */
  async #read(cid: CID): Promise<Uint8Array | undefined> {
    try {
      return await this.#blocks.find(cid);
    } catch (error) {
      this.#log.write("bitswap", "error", `${cid} cannot be sent: ${error}`);
      return undefined;
    }
  }

  #count({ ledger }: Partner, bytes: number): void {
    this.outgo.blocks += 1;
    this.outgo.bytes += bytes;
    ledger.send(bytes);
  }
}

/** It is not here. */
function lack({ link }: Partner, { key, cid, tellMissing }: Order): void {
  if (tellMissing) link.tell(key, { cid: cid.bytes, have: false });
}
