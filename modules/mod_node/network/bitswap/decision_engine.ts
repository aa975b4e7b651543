/**
 * Decides which peer gets the next blocks: each peer gets one message in turn, its most urgent wants first, and blocks
 * are read from the store no faster than peers take them.
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

/** What was sent, in blocks and bytes, and what was refused. */
export interface SentStats {
  blocks: number;
  bytes: number;
  /** Wants beyond the bounds. */
  refused: number;
  readonly sizes: BlockSizes;
}

export interface DecisionEngineDeps {
  readonly blocks: BlockService;
  readonly log: NodeLog;
  /** Memory for blocks that are read and sent. */
  readonly buffers: BufferPool;
}

export interface DecisionEngineOptions {
  /** Wants that are kept for one peer. */
  readonly maxWantsPerPeer?: number;
  /** Bytes of blocks on their way to all peers together. */
  readonly maxBytesInFlight?: number;
  /** Whether peers get anything; asked at each want. By default they do. */
  readonly serves?: () => boolean;
}

/** Bytes of blocks in one message; a longer block is sent alone. */
const TARGET_MESSAGE_SIZE = 512 * 1024;
/** For a peer that takes messages quickly. On a slow line so many bytes would be long in the way of what is urgent by then. */
const LARGE_MESSAGE_SIZE = 1024 * 1024;
/** Milliseconds in which a message is taken quickly. */
const QUICK_MS = 50;
/** Messages with blocks on their way to one peer, while half of the bytes for all is free; otherwise it is one. */
const MAX_MESSAGES_IN_FLIGHT = 2;
/** Blocks of one peer that the store is asked for at a time. */
const MAX_LOOKUPS = 256;
/** A block of up to so many bytes is sent instead of a HAVE. */
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
  /** Peers that wait for a block that is not known to be here, by its key. */
  readonly #waiting = new Map<string, Set<BitswapPeer>>();

  constructor({ blocks, log, buffers }: DecisionEngineDeps, options: DecisionEngineOptions = {}) {
    this.#blocks = blocks;
    this.#log = log;
    this.#buffers = buffers;
    this.#maxWantsPerPeer = options.maxWantsPerPeer ?? 4096;
    this.#serves = options.serves ?? (() => true);
    this.#bytesInFlight = new WeightedSemaphore(options.maxBytesInFlight ?? 64 * 1024 * 1024);
  }

  /** Blocks wait to be read until others are taken. */
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

  /** Messages to a peer may be lost: it will send its wantlist again. */
  streamBroke(peer: BitswapPeer): void {
    this.#clear(peer);
  }

  /** What a peer wants. */
  wantlist(peer: BitswapPeer): CID[] {
    return this.#wantlists.get(peer)?.list() ?? [];
  }

  /** Takes the wantlist entries of a message. @throws Error for bytes that are no CID */
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

  /** Blocks were stored: peers that wait for them get them. */
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

  /** Asks the store for the wants of a peer, never for more than a page at a time however many there are. */
  async #lookUp(peer: BitswapPeer, wantlist: PeerWantlist): Promise<void> {
    wantlist.isLookingUp = true;
    // The entries of one message are looked up together.
    await undefined;
    for (let page = wantlist.takeUnchecked(MAX_LOOKUPS); page.length > 0; page = wantlist.takeUnchecked(MAX_LOOKUPS)) {
      const sizes = await Promise.all(page.map(({ cid }) => this.#sizeOf(cid)));
      this.#answer(peer, wantlist, page, sizes);
      if (wantlist.hasReady) void this.#sendAll(peer, wantlist);
    }
    wantlist.isLookingUp = false;
  }

  /** Undefined for a block that is not here, or is denied. */
  async #sizeOf(cid: CID): Promise<number | undefined> {
    if (this.#blocks.denials?.denies(cid)) return undefined;
    return this.#blocks.size(cid).catch(() => undefined);
  }

  /** Answers a page of wants: with the block, HAVE or DONT_HAVE. */
  #answer(
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

  /** Sends what is ready; reads the next message while the one before is on its way, if there is room. */
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
      // The message queue has reported it, so that the wants of this peer are void.
      await Promise.allSettled(sending);
      this.#log.write("bitswap", "debug", `sending to ${peer.name}: ${reason}`);
    } finally {
      wantlist.isSending = false;
    }
    if (wantlist.hasReady) void this.#sendAll(peer, wantlist);
  }

  /** Reads the blocks of a message; `sent` resolves when the peer has taken them. */
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

  /** Undefined for a block that was removed or denied since it was looked up, or is damaged. */
  async #read({ cid, size = 0 }: PeerWant): Promise<Uint8Array | undefined> {
    if (this.#blocks.denials?.denies(cid)) return undefined;
    try {
      // Small ones would share buffers, which a slow peer holds.
      return await this.#blocks.find(cid, size < MIN_POOLED_BYTES ? undefined : this.#buffers);
    } catch (error) {
      this.#log.write("bitswap", "error", `${cid} cannot be sent: ${error}`);
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

/** Tells a peer that a block is not here, if it wants to know. */
function sendDontHave({ queue }: BitswapPeer, { key, cid, sendDontHave: isAsked }: PeerWant): void {
  if (isAsked) queue.addPresence(key, { cid: cid.bytes, have: false });
}
