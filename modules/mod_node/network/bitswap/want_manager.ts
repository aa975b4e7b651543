/** All blocks that are waited for here, each once, whoever waits; and the peers that may send them. */
import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { BitswapPeer } from "./bitswap_peer.ts";
import { cidOfWireBlock, copyCid, keyOf, keyOfWireBlock } from "./keys.ts";
import type { BlockPresence, WireBlock } from "./message.ts";
import type { RefcountedBuffer } from "./refcounted_buffer.ts";
import type { Provider, Providers, Session, SessionDeps } from "./session.ts";
import { type Waiter, Want } from "./want.ts";

export interface WantManagerDeps {
  readonly blocks: BlockService;
  readonly log: NodeLog;
  /** Connects to a provider. */
  readonly reach: SessionDeps["connect"];
}

/** What came, in blocks and bytes. */
export interface ReceivedStats {
  blocks: number;
  bytes: number;
  /** Blocks that were here already. */
  duplicates: number;
  duplicateBytes: number;
  /** Blocks that nobody had asked for, or with other bytes than asked for. They are not stored. */
  unwanted: number;
}

const MAX_PRIORITY = 2 ** 31 - 1;
const TICK_MS = 250;

export class WantManager implements SessionDeps {
  readonly peers = new Map<string, BitswapPeer>();
  providers: Providers | undefined;
  readonly connect: (provider: Provider, signal: AbortSignal) => Promise<void>;
  readonly received: ReceivedStats = { blocks: 0, bytes: 0, duplicates: 0, duplicateBytes: 0, unwanted: 0 };
  readonly #blocks: BlockService;
  readonly #log: NodeLog;
  readonly #wants = new Map<string, Want>();
  readonly #sessions = new Set<Session>();
  readonly #bySignal = new Map<AbortSignal, { readonly waiters: Set<Waiter>; readonly leave: () => void }>();
  readonly #signalOf = new Map<Waiter, AbortSignal>();
  readonly #queue = new Set<Want>();
  #priority = MAX_PRIORITY;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ blocks, log, reach }: WantManagerDeps) {
    this.#blocks = blocks;
    this.#log = log;
    this.connect = reach;
  }

  /** See `BlockSource.fetch`. */
  fetch(session: Session, cid: CID, signal: AbortSignal | undefined, buffers?: BufferPool): Promise<Uint8Array> {
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
    if (signal !== undefined) this.#onAbort(signal, waiter);
    if (known === undefined) {
      this.#wants.set(key, want);
      this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
      session.request(want);
    }
    return promise;
  }

  /** Forms of CIDs that are waited for. */
  list(): CID[] {
    return [...this.#wants.values()].map(({ cid }) => cid);
  }

  enqueue(want: Want): void {
    this.#queue.add(want);
  }

  addPeer(partner: BitswapPeer): void {
    this.peers.set(partner.name, partner);
    for (const session of this.#sessions) session.addPeer(partner);
  }

  leave(partner: BitswapPeer): void {
    if (this.peers.get(partner.name) === partner) this.peers.delete(partner.name);
    this.#requestsFailed(partner, partner.pending.takeOverdue(true));
    for (const { asked, haves, failed } of this.#wants.values()) {
      for (const peers of [asked, haves, failed]) peers.delete(partner);
    }
  }

  /** What was on the way to or from a peer is lost. */
  streamBroke(partner: BitswapPeer): void {
    this.#requestsFailed(partner, partner.pending.takeOverdue(true));
  }

  /** Blocks came to this node in another way. */
  blocksStored(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#wants.size === 0) return;
    for (const { cid } of blocks) {
      const want = this.#wants.get(keyOf(cid));
      if (want !== undefined && !want.arrived) void this.#readStored(want);
    }
  }

  /** A peer says what it has and has not. */
  receivePresences(partner: BitswapPeer, presences: readonly BlockPresence[]): void {
    for (const { cid, have } of presences) {
      const key = keyOf(copyCid(cid));
      const awaited = partner.pending.awaitsBlock(key);
      const asked = partner.pending.presenceReceived(key, have);
      const want = this.#wants.get(key);
      if (!asked || want === undefined) continue;
      if (have) {
        want.haves.add(partner);
        want.failed.delete(partner);
        for (const { session } of want.waiters) session.peerHasBlocks(partner);
      } else {
        want.failed.add(partner);
        want.haves.delete(partner);
        if (awaited) want.inFlight -= 1;
      }
      want.session?.request(want);
    }
    this.#requestQueued();
  }

  /**
   * Blocks from a peer: those that are wanted are stored, and copies of them handed on. Resolves when that is done, with
   * the number of those that nobody had asked this peer for.
   */
  async receiveBlocks(partner: BitswapPeer, parcels: readonly WireBlock[], memory: RefcountedBuffer): Promise<number> {
    const made = parcels.map(keyOfWireBlock);
    const keys = made.some((key) => key instanceof Promise)
      ? await Promise.all(made)
      : (made as (string | undefined)[]);
    const wanted: { readonly want: Want; readonly bytes: Uint8Array }[] = [];
    const others: { readonly parcel: WireBlock; readonly key: string | undefined; readonly asked: boolean }[] = [];
    for (const [at, parcel] of parcels.entries()) {
      const bytes = parcel.data;
      const key = keys[at];
      this.received.blocks += 1;
      this.received.bytes += bytes.length;
      partner.ledger.receive(bytes.length);
      const expectation = key === undefined ? "never" : partner.pending.blockReceived(key, bytes.length);
      const want = key === undefined ? undefined : this.#wants.get(key);
      if (want === undefined || want.arrived) {
        others.push({ parcel, key, asked: expectation !== "never" });
        continue;
      }
      want.arrived = true;
      for (const other of want.asked) if (other !== partner) other.pending.cancel(want.key);
      for (const { session } of want.waiters) session.peerHasBlocks(partner);
      wanted.push({ want, bytes });
    }
    // There is room for others now, before these are stored.
    this.#requestQueued();
    if (wanted.length > 0) await this.#store(wanted, memory);
    let unasked = 0;
    for (const { parcel, key, asked } of others) if (!(await this.#countUnwanted(parcel, key)) && !asked) unasked += 1;
    return unasked;
  }

  /** Whoever waits is told that the node closes. */
  close(): void {
    this.#closed = true;
    for (const want of this.#wants.values()) this.#finish(want, ({ reject }) => reject(failure("STORE_CLOSED")));
  }

  #nextPriority(): number {
    if (this.#priority === 1) this.#priority = MAX_PRIORITY;
    return this.#priority--;
  }

  /** One listener for all that hang on a signal. */
  #onAbort(signal: AbortSignal, waiter: Waiter): void {
    let followed = this.#bySignal.get(signal);
    if (followed === undefined) {
      const waiters = new Set<Waiter>();
      const leave = () => {
        for (const each of waiters) this.#abandon(each, signal);
      };
      followed = { waiters, leave };
      this.#bySignal.set(signal, followed);
      signal.addEventListener("abort", leave, { once: true });
    }
    followed.waiters.add(waiter);
    this.#signalOf.set(waiter, signal);
  }

  #offAbort(waiter: Waiter): void {
    const signal = this.#signalOf.get(waiter);
    if (signal === undefined) return;
    this.#signalOf.delete(waiter);
    const followed = this.#bySignal.get(signal);
    followed?.waiters.delete(waiter);
    if (followed?.waiters.size !== 0) return;
    this.#bySignal.delete(signal);
    signal.removeEventListener("abort", followed.leave);
  }

  /** A caller has left. What nobody wants any more is withdrawn. */
  #abandon(waiter: Waiter, signal: AbortSignal): void {
    const { want, reject } = waiter;
    reject(want.abortReason(signal));
    this.#removeWaiter(waiter);
    if (want.arrived) return;
    if (want.waiters.size > 0) want.session?.request(want);
    else this.#removeWant(want);
  }

  /** A waiter is through. */
  #removeWaiter(waiter: Waiter): void {
    const { want, session } = waiter;
    want.waiters.delete(waiter);
    this.#offAbort(waiter);
    for (const other of want.waiters) if (other.session === session) return;
    session.wants.delete(want);
    if (session.wants.size > 0) return;
    session.stopSearch();
    this.#sessions.delete(session);
  }

  #removeWant(want: Want): void {
    for (const partner of want.asked) partner.pending.cancel(want.key);
    this.#wants.delete(want.key);
    this.#queue.delete(want);
    if (this.#wants.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #finish(want: Want, tell: (waiter: Waiter) => void): void {
    this.#removeWant(want);
    for (const waiter of want.waiters) {
      tell(waiter);
      waiter.session.blockArrived();
      this.#removeWaiter(waiter);
    }
  }

  async #store(
    wanted: readonly { readonly want: Want; readonly bytes: Uint8Array }[],
    memory: RefcountedBuffer,
  ): Promise<void> {
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

  /** A block that is not waited for; true when it is here. */
  async #countUnwanted(parcel: WireBlock, key: string | undefined): Promise<boolean> {
    const cid = key === undefined ? undefined : cidOfWireBlock(parcel, key);
    const here = cid !== undefined && (await this.#blocks.has(cid));
    if (here) {
      this.received.duplicates += 1;
      this.received.duplicateBytes += parcel.data.length;
    } else this.received.unwanted += 1;
    return here;
  }

  /** Gives a block that may be here by now to those who wait. */
  async #readStored(want: Want): Promise<void> {
    const bytes = await this.#blocks.find(want.cid).catch(() => undefined);
    if (bytes !== undefined && this.#wants.get(want.key) === want && !want.arrived) {
      this.#finish(want, ({ resolve }) => resolve(bytes));
    }
  }

  /** A peer does not send what it was to send: others are asked. */
  #requestsFailed(partner: BitswapPeer, keys: readonly string[]): void {
    for (const key of keys) {
      const want = this.#wants.get(key);
      if (want === undefined) continue;
      want.inFlight -= 1;
      want.failed.add(partner);
      want.session?.request(want);
    }
    if (keys.length > 0) this.#log.write("bitswap", "debug", `${partner.name} did not send ${keys.length} blocks`);
  }

  /** Those for which there is still no room come back into the queue. */
  #requestQueued(): void {
    for (const want of [...this.#queue]) {
      this.#queue.delete(want);
      want.session?.request(want);
    }
  }

  #tick(): void {
    for (const partner of this.peers.values()) this.#requestsFailed(partner, partner.pending.takeOverdue());
    this.#requestQueued();
    for (const session of this.#sessions) session.tick();
    const now = performance.now();
    // It may have come between the look into the store and the asking.
    for (const want of this.#wants.values()) {
      const age = now - want.since;
      if (age >= TICK_MS * 4 && age < TICK_MS * 5) void this.#readStored(want);
    }
  }
}

function copy(bytes: Uint8Array, buffers: BufferPool | undefined): Uint8Array {
  const { length } = bytes;
  const into = buffers?.take(length) ?? Buffer.allocUnsafeSlow(length);
  into.set(bytes);
  return into;
}

/** The forms under which it is to be stored: those that are waited for. */
function formsOf({ waiters, cid }: Want): CID[] {
  const forms = [cid];
  for (const waiter of waiters) if (!forms.some((form) => form.equals(waiter.cid))) forms.push(waiter.cid);
  return forms;
}
