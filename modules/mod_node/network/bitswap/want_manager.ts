/**
 * Manages the wanted blocks, each once however many callers wait for it, and the peers that may
 * send them.
 */

import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { counted } from "../../util/counted.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { ProviderRecord } from "../routing/provider_record.ts";
import { AbortGroups } from "./abort_groups.ts";
import type { BitswapPeer } from "./bitswap_peer.ts";
import type { BlockPeer, OtherSources, SourceReceiver } from "./block_peer.ts";
import { BlockSizes } from "./block_sizes.ts";
import { cidOfWireBlock, copyCid, keyOf, keyOfWireBlock } from "./keys.ts";
import type { BlockPresence, WireBlock } from "./message.ts";
import { RefcountedBuffer } from "./refcounted_buffer.ts";
import type { Providers, SessionDeps } from "./session.ts";
import { type Waiter, Want, type WantSession } from "./want.ts";

export interface WantManagerDeps {
  readonly blocks: BlockService;
  readonly log: NodeLog;
  /** Connects to a provider. */
  readonly connect: SessionDeps["connect"];
}

/** Number of received blocks and bytes. */
export interface ReceivedStats {
  blocks: number;
  bytes: number;
  /** Number of blocks that were stored already. */
  duplicates: number;
  duplicateBytes: number;
  /** Number of blocks that were never requested. They are not stored. */
  unwanted: number;
  readonly sizes: BlockSizes;
  readonly duplicateSizes: BlockSizes;
}

/** A received block that a caller waits for. */
interface WantedBlock {
  readonly want: Want;
  readonly bytes: Uint8Array;
}

/** A received block that no caller waits for. */
interface UnwantedBlock {
  readonly block: WireBlock;
  readonly key: string | undefined;
  /** Whether it had been requested from the peer. */
  readonly isRequested: boolean;
}

const MAX_PRIORITY = 2 ** 31 - 1;
const TICK_MS = 250;

export class WantManager implements SessionDeps, SourceReceiver {
  readonly peers = new Map<string, BitswapPeer>();
  providers: Providers | undefined;
  sources: OtherSources | undefined;
  readonly connect: (provider: ProviderRecord, signal: AbortSignal) => Promise<void>;
  readonly received: ReceivedStats = {
    blocks: 0,
    bytes: 0,
    duplicates: 0,
    duplicateBytes: 0,
    unwanted: 0,
    sizes: new BlockSizes(),
    duplicateSizes: new BlockSizes(),
  };
  readonly #blocks: BlockService;
  readonly #log: NodeLog;
  readonly #wants = new Map<string, Want>();
  readonly #sessions = new Set<WantSession>();
  readonly #aborts = new AbortGroups<Waiter>((waiter, signal) => this.#abandon(waiter, signal));
  readonly #queue = new Set<Want>();
  #priority = MAX_PRIORITY;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ blocks, log, connect }: WantManagerDeps) {
    this.#blocks = blocks;
    this.#log = log;
    this.connect = connect;
  }

  /** Fetches a block: see `BlockSource.fetch`. */
  fetch(session: WantSession, cid: CID, signal: AbortSignal | undefined, buffers?: BufferPool): Promise<Uint8Array> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(failure("STORE_CLOSED"));
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const key = keyOf(cid);
    const known = this.#wants.get(key);
    const want = known ?? new Want(key, cid, this.#nextPriority());
    const waiter: Waiter = { want, session, cid, buffers, resolve, reject };
    want.waiters.add(waiter);
    session.wants.add(want);
    this.#sessions.add(session);
    if (signal !== undefined) this.#aborts.add(signal, waiter);
    if (known === undefined) {
      this.#wants.set(key, want);
      this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
      session.requestBlock(want);
    }
    return promise;
  }

  /** Returns the CIDs that callers wait for. */
  list(): CID[] {
    return [...this.#wants.values()].map(({ cid }) => cid);
  }

  /**
   * Rejects the fetches of these blocks as not found; a block that has already arrived is still
   * delivered.
   */
  unwant(cids: readonly CID[]): void {
    for (const cid of cids) {
      const want = this.#wants.get(keyOf(cid));
      if (want === undefined || want.arrived) continue;
      this.#finish(want, ({ reject }) => reject(failure("BLOCK_NOT_FOUND", { cid: String(want.cid) })));
    }
  }

  enqueue(want: Want): void {
    this.#queue.add(want);
  }

  addPeer(peer: BitswapPeer): void {
    this.peers.set(peer.name, peer);
    for (const session of this.#sessions) session.addPeer(peer);
  }

  /** Removes a peer that has disconnected, or a source that was dropped. */
  removePeer(peer: BlockPeer): void {
    if (this.peers.get(peer.name) === peer) this.peers.delete(peer.name);
    this.#requestsFailed(peer, peer.pending.takeOverdue(true));
    for (const want of this.#wants.values()) want.forgetPeer(peer);
  }

  /** Requests blocks from other peers, because messages to this peer may be lost. */
  streamBroke(peer: BlockPeer): void {
    this.#requestsFailed(peer, peer.pending.takeOverdue(true));
  }

  sourcePaused(source: BlockPeer): void {
    for (const key of source.pending.takeOverdue(true)) {
      const want = this.#wants.get(key);
      if (want === undefined) continue;
      want.requestVoided();
      want.session?.requestBlock(want);
    }
  }

  sourceReady(source: BlockPeer): void {
    for (const session of this.#sessions) session.sourceReady(source);
  }

  /** Delivers blocks that other code has stored. */
  blocksStored(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#wants.size === 0) return;
    for (const { cid } of blocks) {
      const want = this.#wants.get(keyOf(cid));
      if (want !== undefined && !want.arrived) void this.#readStored(want);
    }
  }

  receivePresences(peer: BlockPeer, presences: readonly BlockPresence[]): void {
    for (const { cid, have } of presences) {
      const key = keyOf(copyCid(cid));
      const wasInFlight = peer.pending.awaitsBlock(key);
      const isRequested = peer.pending.presenceReceived(key, have);
      const want = this.#wants.get(key);
      if (!isRequested || want === undefined) continue;
      if (have) {
        want.peerHas(peer);
        for (const { session } of want.waiters) session.peerHasBlocks(peer);
      } else want.peerLacks(peer, wasInFlight);
      want.session?.requestBlock(want);
    }
    this.#requestQueued();
  }

  /**
   * Stores the wanted blocks of a message, and delivers copies to the waiters. Resolves when that
   * is done, to the number of blocks that this peer was never asked for.
   */
  async receiveBlocks(peer: BlockPeer, blocks: readonly WireBlock[], memory: RefcountedBuffer): Promise<number> {
    const hashed = blocks.map(keyOfWireBlock);
    const keys = hashed.some((key) => key instanceof Promise)
      ? await Promise.all(hashed)
      : (hashed as (string | undefined)[]);
    return this.#receive(peer, blocks, keys, memory);
  }

  /** Like `receiveBlocks`, for blocks in memory of their own. */
  blocksArrived(source: BlockPeer, blocks: readonly WireBlock[], keys: readonly string[]): Promise<number> {
    return this.#receive(source, blocks, keys, new RefcountedBuffer(() => {}));
  }

  async #receive(
    peer: BlockPeer,
    blocks: readonly WireBlock[],
    keys: readonly (string | undefined)[],
    memory: RefcountedBuffer,
  ): Promise<number> {
    const wanted: WantedBlock[] = [];
    const unwanted: UnwantedBlock[] = [];
    for (const [at, block] of blocks.entries()) {
      const bytes = block.data;
      const key = keys[at];
      this.received.blocks += 1;
      this.received.bytes += bytes.length;
      this.received.sizes.add(bytes.length);
      peer.ledger.receive(bytes.length);
      const expectation = key === undefined ? "never" : peer.pending.blockReceived(key, bytes.length);
      const want = key === undefined ? undefined : this.#wants.get(key);
      if (want === undefined || want.arrived) {
        unwanted.push({ block, key, isRequested: expectation !== "never" });
        continue;
      }
      want.arrived = true;
      for (const other of want.requestedPeers) if (other !== peer) other.pending.cancel(want.key);
      for (const { session } of want.waiters) session.peerHasBlocks(peer);
      wanted.push({ want, bytes });
    }
    // The peer has room for more requests already, before these blocks are stored.
    this.#requestQueued();
    if (wanted.length > 0) await this.#store(wanted, memory);
    let unasked = 0;
    for (const each of unwanted) if (!(await this.#countUnwanted(each)) && !each.isRequested) unasked += 1;
    return unasked;
  }

  /** Rejects all waiting fetches. */
  close(): void {
    this.#closed = true;
    for (const want of this.#wants.values()) this.#finish(want, ({ reject }) => reject(failure("STORE_CLOSED")));
  }

  #nextPriority(): number {
    if (this.#priority === 1) this.#priority = MAX_PRIORITY;
    return this.#priority--;
  }

  /** Handles an aborted caller. A want without waiters is cancelled. */
  #abandon(waiter: Waiter, signal: AbortSignal): void {
    const { want, reject } = waiter;
    reject(want.abortReason(signal));
    this.#removeWaiter(waiter);
    if (want.arrived) return;
    if (want.waiters.size > 0) want.session?.requestBlock(want);
    else this.#removeWant(want);
  }

  #removeWaiter(waiter: Waiter): void {
    const { want, session } = waiter;
    want.waiters.delete(waiter);
    this.#aborts.delete(waiter);
    for (const other of want.waiters) if (other.session === session) return;
    session.wants.delete(want);
    if (session.wants.size > 0) return;
    session.stopSearch();
    this.#sessions.delete(session);
  }

  #removeWant(want: Want): void {
    for (const peer of want.requestedPeers) peer.pending.cancel(want.key);
    this.#wants.delete(want.key);
    this.#queue.delete(want);
    if (this.#wants.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #finish(want: Want, settle: (waiter: Waiter) => void): void {
    this.#removeWant(want);
    for (const waiter of want.waiters) {
      settle(waiter);
      waiter.session.blockArrived();
      this.#removeWaiter(waiter);
    }
  }

  async #store(wanted: readonly WantedBlock[], memory: RefcountedBuffer): Promise<void> {
    try {
      const blocks: Block[] = [];
      for (const { want, bytes } of wanted) {
        for (const cid of formsOf(want)) blocks.push({ cid, bytes, release: memory.retain() });
      }
      await this.#blocks.put(blocks);
      for (const { want, bytes } of wanted) this.#finish(want, ({ resolve, buffers }) => resolve(copy(bytes, buffers)));
    } catch (reason) {
      for (const { want } of wanted) this.#finish(want, ({ reject }) => reject(reason));
    }
  }

  /** Counts a block that no caller waits for; returns whether it is a duplicate. */
  async #countUnwanted({ block, key }: UnwantedBlock): Promise<boolean> {
    const cid = key === undefined ? undefined : cidOfWireBlock(block, key);
    const isStored = cid !== undefined && (await this.#blocks.has(cid));
    if (isStored) {
      this.received.duplicates += 1;
      this.received.duplicateBytes += block.data.length;
      this.received.duplicateSizes.add(block.data.length);
    } else this.received.unwanted += 1;
    return isStored;
  }

  /** Delivers a block that may have been stored meanwhile. */
  async #readStored(want: Want): Promise<void> {
    const bytes = await this.#blocks.find(want.cid).catch(() => undefined);
    if (bytes !== undefined && this.#wants.get(want.key) === want && !want.arrived) {
      this.#finish(want, ({ resolve }) => resolve(bytes));
    }
  }

  /** Requests blocks from other peers, because this peer did not send them. */
  #requestsFailed(peer: BlockPeer, keys: readonly string[]): void {
    for (const key of keys) {
      const want = this.#wants.get(key);
      if (want === undefined) continue;
      want.requestFailed(peer);
      want.session?.requestBlock(want);
    }
    if (keys.length > 0)
      this.#log.write("bitswap", "debug", `${peer.name} did not send ${counted(keys.length, "block")}`);
  }

  /** Requests the queued wants; those for which there is still no room enter the queue again. */
  #requestQueued(): void {
    for (const want of [...this.#queue]) {
      this.#queue.delete(want);
      want.session?.requestBlock(want);
    }
  }

  #tick(): void {
    for (const peer of this.peers.values()) this.#requestsFailed(peer, peer.pending.takeOverdue());
    if (this.sources !== undefined) this.#tickSources(this.sources);
    this.#requestQueued();
    for (const session of this.#sessions) session.tick();
    const now = performance.now();
    // The block may have been stored after the caller looked into the store and before the request.
    for (const want of this.#wants.values()) {
      const age = now - want.since;
      if (age >= TICK_MS * 4 && age < TICK_MS * 5) void this.#readStored(want);
    }
  }

  #tickSources(sources: OtherSources): void {
    sources.tick();
    for (const source of sources.all) this.#requestsFailed(source, source.pending.takeOverdue());
  }
}

function copy(bytes: Uint8Array, buffers: BufferPool | undefined): Uint8Array {
  const { length } = bytes;
  const into = buffers?.take(length) ?? Buffer.allocUnsafeSlow(length);
  into.set(bytes);
  return into;
}

/** Returns the CIDs to store a block under: all forms that callers wait for. */
function formsOf({ waiters, cid }: Want): CID[] {
  const forms = [cid];
  for (const waiter of waiters) if (!forms.some((form) => form.equals(waiter.cid))) forms.push(waiter.cid);
  return forms;
}
