/** Blocks for others: each gets a message in turn, and no more is read from the store than they take. */
import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { WeightedSemaphore } from "../../util/async/weighted_semaphore.ts";
import type { NodeLog } from "../../util/log.ts";
import type { BitswapPeer } from "./bitswap_peer.ts";
import { copyCid, keyOf, keyOfCid } from "./keys.ts";
import { type DecodedMessage, MAX_BLOCK_SIZE } from "./message.ts";
import { type PeerWant, PeerWantlist } from "./peer_wantlist.ts";

/** What went out, in blocks and bytes, and what was not taken. */
export interface SentStats {
  blocks: number;
  bytes: number;
  /** Wants beyond the bounds. */
  refused: number;
}

export interface DecisionEngineOptions {
  /** Wants that are kept for one peer. */
  readonly maxWantsPerPeer?: number;
  /** Bytes of blocks that are on their way to all peers together. */
  readonly maxBytesInFlight?: number;
}

/** Bytes of blocks in one message; a longer block goes alone. */
const TARGET_MESSAGE_SIZE = 512 * 1024;
/** Messages with blocks that are on their way to one peer, while half of the room for all is left; else it is one. */
const MAX_MESSAGES_IN_FLIGHT = 2;
/** Blocks of one peer that the store is asked for at a time. */
const MAX_LOOKUPS = 256;
/** A block no longer than that is sent to who asks only whether it is there. */
const MAX_HAVE_REPLACED_SIZE = 1024;

export class DecisionEngine {
  readonly sent: SentStats = { blocks: 0, bytes: 0, refused: 0 };
  readonly #blocks: BlockService;
  readonly #log: NodeLog;
  readonly #maxWantsPerPeer: number;
  readonly #budget: WeightedSemaphore;
  readonly #wantlists = new Map<BitswapPeer, PeerWantlist>();
  /** Who waits for what is not known to be here. */
  readonly #waiting = new Map<string, Set<BitswapPeer>>();

  constructor(blocks: BlockService, log: NodeLog, options: DecisionEngineOptions = {}) {
    this.#blocks = blocks;
    this.#log = log;
    this.#maxWantsPerPeer = options.maxWantsPerPeer ?? 4096;
    this.#budget = new WeightedSemaphore(options.maxBytesInFlight ?? 64 * 1024 * 1024);
  }

  /** Others wait for the room that blocks on their way take. */
  get isUnderPressure(): boolean {
    return this.#budget.hasWaiters;
  }

  addPeer(partner: BitswapPeer): void {
    this.#wantlists.set(partner, new PeerWantlist());
  }

  removePeer(partner: BitswapPeer): void {
    this.#clear(partner);
    this.#wantlists.delete(partner);
  }

  /** What was on the way to a peer is lost: it says anew what it wants. */
  streamBroke(partner: BitswapPeer): void {
    this.#clear(partner);
  }

  /** What a peer wants. */
  wantlist(partner: BitswapPeer): CID[] {
    return this.#wantlists.get(partner)?.list() ?? [];
  }

  /** Takes the wants of a message. @throws Error at bytes that are no CID */
  receiveWants(partner: BitswapPeer, { full, entries, droppedEntries }: DecodedMessage): void {
    const orders = this.#wantlists.get(partner);
    if (orders === undefined) return;
    if (full) this.#clear(partner);
    this.sent.refused += droppedEntries;
    for (const { cid, cancel, priority, have, sendDontHave } of entries) {
      const key = keyOfCid(cid);
      const known = orders.get(key);
      if (cancel) {
        if (known !== undefined) this.#remove(partner, orders, known);
      } else if (known !== undefined) {
        orders.update(known, { priority, wantBlock: !have, sendDontHave });
        if (known.state === "waiting") this.#check(partner, orders, known);
      } else if (orders.size >= this.#maxWantsPerPeer) {
        this.sent.refused += 1;
        if (sendDontHave) partner.queue.addPresence(key, { cid: cid.slice(), have: false });
      } else {
        const [size, state] = [undefined, "waiting"] as const;
        const order: PeerWant = { key, cid: copyCid(cid), priority, wantBlock: !have, sendDontHave, size, state };
        orders.add(order);
        this.#addWaiting(partner, key);
        this.#check(partner, orders, order);
      }
    }
  }

  /** Blocks came: whoever waits for them gets them. */
  blocksStored(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#waiting.size === 0) return;
    for (const { cid } of blocks) {
      const key = keyOf(cid);
      for (const partner of this.#waiting.get(key) ?? []) {
        const orders = this.#wantlists.get(partner);
        const order = orders?.get(key);
        if (orders !== undefined && order?.state === "waiting") this.#check(partner, orders, order);
      }
    }
  }

  #check(partner: BitswapPeer, orders: PeerWantlist, order: PeerWant): void {
    orders.markUnchecked(order);
    if (!orders.isLookingUp) void this.#lookUp(partner, orders);
  }

  /** However much a peer asks, and however often, the store is asked for no more than a page at a time. */
  async #lookUp(partner: BitswapPeer, orders: PeerWantlist): Promise<void> {
    orders.isLookingUp = true;
    // What one message asks for goes together.
    await undefined;
    for (let page = orders.takeUnchecked(MAX_LOOKUPS); page.length > 0; page = orders.takeUnchecked(MAX_LOOKUPS)) {
      const sizes = await Promise.all(page.map(({ cid }) => this.#blocks.size(cid).catch(() => undefined)));
      this.#answer(partner, orders, page, sizes);
      if (orders.hasReady) void this.#sendAll(partner, orders);
    }
    orders.isLookingUp = false;
  }

  /** Answers for what is here and what is not. */
  #answer(
    partner: BitswapPeer,
    orders: PeerWantlist,
    page: readonly PeerWant[],
    sizes: readonly (number | undefined)[],
  ): void {
    for (const [at, order] of page.entries()) {
      if (orders.get(order.key) !== order || order.state !== "waiting") continue;
      const size = sizes[at];
      if (size === undefined || size > MAX_BLOCK_SIZE) sendDontHave(partner, order);
      else if (order.wantBlock || size <= MAX_HAVE_REPLACED_SIZE) {
        this.#removeWaiting(partner, order.key);
        orders.markReady(order, size);
      } else {
        this.#remove(partner, orders, order);
        partner.queue.addPresence(order.key, { cid: order.cid.bytes, have: true });
      }
    }
  }

  /** The peer gets it if it comes. */
  #addWaiting(partner: BitswapPeer, key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, new Set([partner]));
    else waiting.add(partner);
  }

  #removeWaiting(partner: BitswapPeer, key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting?.delete(partner) && waiting.size === 0) this.#waiting.delete(key);
  }

  #remove(partner: BitswapPeer, orders: PeerWantlist, order: PeerWant): void {
    orders.remove(order);
    this.#removeWaiting(partner, order.key);
  }

  #clear(partner: BitswapPeer): void {
    const orders = this.#wantlists.get(partner);
    if (orders === undefined) return;
    for (const key of orders.keys()) this.#removeWaiting(partner, key);
    orders.clear();
  }

  /** Reads the next message while the one before is on its way, if there is room. */
  async #sendAll(partner: BitswapPeer, orders: PeerWantlist): Promise<void> {
    if (orders.isSending) return;
    orders.isSending = true;
    const sending: Promise<void>[] = [];
    try {
      while (orders.hasReady || sending.length > 0) {
        const most = this.#budget.isHalfFree ? MAX_MESSAGES_IN_FLIGHT : 1;
        if (orders.hasReady && sending.length < most) sending.push((await this.#sendNext(partner, orders)).sent);
        else await sending.shift();
      }
    } catch (reason) {
      // The link has told of it: what this peer wants is void.
      await Promise.allSettled(sending);
      this.#log.write("bitswap", "debug", `sending to ${partner.name}: ${reason}`);
    } finally {
      orders.isSending = false;
    }
    if (orders.hasReady) void this.#sendAll(partner, orders);
  }

  /** Reads the blocks of a message; `sent` is when the peer has taken them. */
  async #sendNext(partner: BitswapPeer, orders: PeerWantlist): Promise<{ readonly sent: Promise<void> }> {
    const taken = orders.takeReady(TARGET_MESSAGE_SIZE);
    const bytes = taken.reduce((sum, { size = 0 }) => sum + size, 0);
    await this.#budget.acquire(bytes);
    const found = await Promise.all(taken.map(({ cid }) => this.#read(cid)));
    const blocks: Block[] = [];
    for (const [at, order] of taken.entries()) {
      const data = found[at];
      if (data !== undefined) blocks.push({ cid: order.cid, bytes: data });
      else if (orders.get(order.key) === order) {
        order.state = "waiting";
        this.#addWaiting(partner, order.key);
        sendDontHave(partner, order);
      }
    }
    const sent = partner.queue.sendBlocks(blocks, orders.pendingBytes).then(() => {
      for (const { bytes: data } of blocks) this.#count(partner, data.length);
      for (const order of taken) if (order.state === "sending") orders.remove(order);
    });
    const given = sent.finally(() => this.#budget.release(bytes));
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

  #count({ ledger }: BitswapPeer, bytes: number): void {
    this.sent.blocks += 1;
    this.sent.bytes += bytes;
    ledger.send(bytes);
  }
}

/** It is not here. */
function sendDontHave({ queue }: BitswapPeer, { key, cid, sendDontHave }: PeerWant): void {
  if (sendDontHave) queue.addPresence(key, { cid: cid.bytes, have: false });
}
