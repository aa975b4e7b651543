/**
 * Decides which peer gets the next blocks: peers take turns with one message each, most urgent
 * wants first. Blocks are read from the store only as fast as peers receive them.
 */

import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { type BufferPool, MIN_POOLED_BYTES } from "../../storage/blockstore/buffer_pool.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { WeightedSemaphore } from "../../util/async/weighted_semaphore.ts";
import type { NodeLog } from "../../util/log.ts";
import { ownBytes } from "../../util/own_bytes.ts";
import type { BitswapPeer } from "./bitswap_peer.ts";
import { BlockSizes } from "./block_sizes.ts";
import { copyCid, keyOf, keyOfCid } from "./keys.ts";
import { type DecodedMessage, MAX_BLOCK_SIZE, type WantlistEntry } from "./message.ts";
import { type PeerWant, PeerWantlist } from "./peer_wantlist.ts";

/** Number of sent blocks and bytes, and of refused wants. */
export interface SentStats {
  blocks: number;
  bytes: number;
  /** Number of wants that exceeded the limits. */
  refused: number;
  readonly sizes: BlockSizes;
}

export interface DecisionEngineDeps {
  readonly blocks: BlockService;
  readonly log: NodeLog;
  /** Buffers for blocks that are read and sent. */
  readonly buffers: BufferPool;
}

export interface DecisionEngineOptions {
  /** Maximum number of wants that are stored per peer. */
  readonly maxWantsPerPeer?: number;
  /** Maximum number of bytes of blocks in flight to all peers together. */
  readonly maxBytesInFlight?: number;
  /** Whether to serve peers; called for each want. By default they are served. */
  readonly serves?: () => boolean;
}

/** Target for the bytes of blocks in one message; a longer block is sent alone. */
const TARGET_MESSAGE_SIZE = 512 * 1024;
/**
 * Target for a peer that receives messages quickly. On a slow connection, such a long message would
 * delay wants that become urgent meanwhile.
 */
const LARGE_MESSAGE_SIZE = 1024 * 1024;
/** A message that is received within this many milliseconds counts as quick. */
const QUICK_MS = 50;
/**
 * Maximum number of messages with blocks in flight to one peer while at least half of the total
 * limit is free; otherwise the maximum is one.
 */
const MAX_MESSAGES_IN_FLIGHT = 2;
/** Maximum number of concurrent lookups in the store for one peer. */
const MAX_LOOKUPS = 256;
/** Maximum size of a block that is sent instead of a HAVE. */
const MAX_HAVE_REPLACED_SIZE = 1024;

export class DecisionEngine {
  readonly sent: SentStats = { blocks: 0, bytes: 0, refused: 0, sizes: new BlockSizes() };
  readonly #blocks: BlockService;
  readonly #log: NodeLog;
  readonly #buffers: BufferPool;
  readonly #maxWantsPerPeer: number;
  readonly #serves: () => boolean;
  readonly #bytesInFlight: WeightedSemaphore;
  readonly #wantlists = new Map<BitswapPeer, PeerWantlist>();
  /** Peers that wait for a block that is not known to be stored, by the key of the block. */
  readonly #waiting = new Map<string, Set<BitswapPeer>>();

  constructor({ blocks, log, buffers }: DecisionEngineDeps, options: DecisionEngineOptions = {}) {
    this.#blocks = blocks;
    this.#log = log;
    this.#buffers = buffers;
    this.#maxWantsPerPeer = options.maxWantsPerPeer ?? 4096;
    this.#serves = options.serves ?? (() => true);
    this.#bytesInFlight = new WeightedSemaphore(options.maxBytesInFlight ?? 64 * 1024 * 1024);
  }

  /** Whether reads wait until peers have received other blocks. */
  get isUnderPressure(): boolean {
    return this.#bytesInFlight.hasWaiters;
  }

  addPeer(peer: BitswapPeer): void {
    this.#wantlists.set(peer, new PeerWantlist());
  }

  removePeer(peer: BitswapPeer): void {
    this.#clear(peer);
    this.#wantlists.delete(peer);
  }

  /** Messages to the peer may be lost, so it will send its wantlist again. */
  streamBroke(peer: BitswapPeer): void {
    this.#clear(peer);
  }

  /** Returns the blocks that a peer wants. */
  wantlist(peer: BitswapPeer): CID[] {
    return this.#wantlists.get(peer)?.list() ?? [];
  }

  /** Processes the wantlist entries of a message. @throws Error for an invalid CID */
  receiveWants(peer: BitswapPeer, { full, entries, droppedEntries }: DecodedMessage): void {
    const wantlist = this.#wantlists.get(peer);
    if (wantlist === undefined) return;
    if (full) this.#clear(peer);
    this.sent.refused += droppedEntries;
    for (const entry of entries) this.#receiveEntry(peer, wantlist, entry);
  }

  #receiveEntry(peer: BitswapPeer, wantlist: PeerWantlist, entry: WantlistEntry): void {
    const { cid, cancel, priority, have, sendDontHave } = entry;
    const key = keyOfCid(cid);
    const known = wantlist.get(key);
    if (cancel) {
      if (known !== undefined) this.#remove(peer, wantlist, known);
    } else if (!this.#serves()) {
      if (sendDontHave) peer.queue.addPresence(key, { cid: ownBytes(cid), have: false });
    } else if (known !== undefined) {
      wantlist.update(known, { priority, wantBlock: !have, sendDontHave });
      if (known.state === "waiting") this.#check(peer, wantlist, known);
    } else if (wantlist.size >= this.#maxWantsPerPeer) {
      this.sent.refused += 1;
      if (sendDontHave) peer.queue.addPresence(key, { cid: ownBytes(cid), have: false });
    } else {
      const [size, state] = [undefined, "waiting"] as const;
      const want: PeerWant = { key, cid: copyCid(cid), priority, wantBlock: !have, sendDontHave, size, state };
      wantlist.add(want);
      this.#addWaiting(peer, key);
      this.#check(peer, wantlist, want);
    }
  }

  /** Sends newly stored blocks to the peers that wait for them. */
  blocksStored(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#waiting.size === 0 || !this.#serves()) return;
    for (const { cid } of blocks) {
      const key = keyOf(cid);
      for (const peer of this.#waiting.get(key) ?? []) {
        const wantlist = this.#wantlists.get(peer);
        const want = wantlist?.get(key);
        if (wantlist !== undefined && want?.state === "waiting") this.#check(peer, wantlist, want);
      }
    }
  }

  #check(peer: BitswapPeer, wantlist: PeerWantlist, want: PeerWant): void {
    wantlist.markUnchecked(want);
    if (!wantlist.isLookingUp) void this.#lookUp(peer, wantlist);
  }

  /** Looks up the wants of a peer in the store, one limited page at a time. */
  async #lookUp(peer: BitswapPeer, wantlist: PeerWantlist): Promise<void> {
    wantlist.isLookingUp = true;
    // Waits for a microtask, so that all entries of one message are looked up together.
    await undefined;
    for (let page = wantlist.takeUnchecked(MAX_LOOKUPS); page.length > 0; page = wantlist.takeUnchecked(MAX_LOOKUPS)) {
      const sizes = await Promise.all(page.map(({ cid }) => this.#sizeOf(cid)));
      this.#respond(peer, wantlist, page, sizes);
      if (wantlist.hasReady) void this.#sendAll(peer, wantlist);
    }
    wantlist.isLookingUp = false;
  }

  /** Resolves to undefined for a block that is not stored or is denied. */
  async #sizeOf(cid: CID): Promise<number | undefined> {
    if (this.#blocks.denials?.denies(cid)) return undefined;
    return this.#blocks.size(cid).catch(() => undefined);
  }

  /** Responds to a page of wants with the block, HAVE or DONT_HAVE. */
  #respond(
    peer: BitswapPeer,
    wantlist: PeerWantlist,
    page: readonly PeerWant[],
    sizes: readonly (number | undefined)[],
  ): void {
    for (const [at, want] of page.entries()) {
      if (wantlist.get(want.key) !== want || want.state !== "waiting") continue;
      const size = sizes[at];
      if (size === undefined || size > MAX_BLOCK_SIZE) sendDontHave(peer, want);
      else if (want.wantBlock || size <= MAX_HAVE_REPLACED_SIZE) {
        this.#removeWaiting(peer, want.key);
        wantlist.markReady(want, size);
      } else {
        this.#remove(peer, wantlist, want);
        peer.queue.addPresence(want.key, { cid: want.cid.bytes, have: true });
      }
    }
  }

  #addWaiting(peer: BitswapPeer, key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) this.#waiting.set(key, new Set([peer]));
    else waiting.add(peer);
  }

  #removeWaiting(peer: BitswapPeer, key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting?.delete(peer) && waiting.size === 0) this.#waiting.delete(key);
  }

  #remove(peer: BitswapPeer, wantlist: PeerWantlist, want: PeerWant): void {
    wantlist.remove(want);
    this.#removeWaiting(peer, want.key);
  }

  #clear(peer: BitswapPeer): void {
    const wantlist = this.#wantlists.get(peer);
    if (wantlist === undefined) return;
    for (const key of wantlist.keys()) this.#removeWaiting(peer, key);
    wantlist.clear();
  }

  /**
   * Sends the ready blocks, and reads the next message while the previous one is in flight, if the
   * limits allow it.
   */
  async #sendAll(peer: BitswapPeer, wantlist: PeerWantlist): Promise<void> {
    if (wantlist.isSending) return;
    wantlist.isSending = true;
    const sending: Promise<void>[] = [];
    try {
      while (wantlist.hasReady || sending.length > 0) {
        const max = this.#bytesInFlight.isHalfFree ? MAX_MESSAGES_IN_FLIGHT : 1;
        if (wantlist.hasReady && sending.length < max) sending.push((await this.#sendNext(peer, wantlist)).sent);
        else await sending.shift();
      }
    } catch (reason) {
      // The message queue has reported the failure and voided the wants of this peer.
      await Promise.allSettled(sending);
      this.#log.write("bitswap", "debug", `cannot send to ${peer.name}: ${reason}`);
    } finally {
      wantlist.isSending = false;
    }
    if (wantlist.hasReady) void this.#sendAll(peer, wantlist);
  }

  /** Reads the blocks of a message; `sent` resolves when the peer has received them. */
  async #sendNext(peer: BitswapPeer, wantlist: PeerWantlist): Promise<{ readonly sent: Promise<void> }> {
    const wants = wantlist.takeReady(wantlist.isQuick ? LARGE_MESSAGE_SIZE : TARGET_MESSAGE_SIZE);
    const bytes = wants.reduce((sum, { size = 0 }) => sum + size, 0);
    await this.#bytesInFlight.acquire(bytes);
    const found = await Promise.all(wants.map((want) => this.#read(want)));
    const blocks: Block[] = [];
    for (const [at, want] of wants.entries()) {
      const data = found[at];
      if (data !== undefined) blocks.push({ cid: want.cid, bytes: data });
      else if (wantlist.get(want.key) === want) {
        want.state = "waiting";
        this.#addWaiting(peer, want.key);
        sendDontHave(peer, want);
      }
    }
    const began = performance.now();
    const delivered = peer.queue.sendBlocks(blocks, wantlist.pendingBytes).then((isCopied) => {
      wantlist.isQuick = performance.now() - began < QUICK_MS;
      for (const { bytes: data } of blocks) {
        this.#count(peer, data.length);
        if (isCopied) this.#buffers.release(data);
      }
      for (const want of wants) if (want.state === "sending") wantlist.remove(want);
    });
    const sent = delivered.finally(() => this.#bytesInFlight.release(bytes));
    sent.catch(() => {});
    return { sent };
  }

  /**
   * Resolves to undefined for a damaged block, and for one that was removed or denied after its
   * lookup.
   */
  async #read({ cid, size = 0 }: PeerWant): Promise<Uint8Array | undefined> {
    if (this.#blocks.denials?.denies(cid)) return undefined;
    try {
      // Small blocks would share a buffer, which a slow peer would then occupy.
      return await this.#blocks.find(cid, size < MIN_POOLED_BYTES ? undefined : this.#buffers);
    } catch (error) {
      this.#log.write("bitswap", "error", `cannot send ${cid}: ${error}`);
      return undefined;
    }
  }

  #count({ ledger }: BitswapPeer, bytes: number): void {
    this.sent.blocks += 1;
    this.sent.bytes += bytes;
    this.sent.sizes.add(bytes);
    ledger.send(bytes);
  }
}

/** Sends DONT_HAVE for a block if the peer has requested that. */
function sendDontHave({ queue }: BitswapPeer, { key, cid, sendDontHave: isRequested }: PeerWant): void {
  if (isRequested) queue.addPresence(key, { cid: cid.bytes, have: false });
}
