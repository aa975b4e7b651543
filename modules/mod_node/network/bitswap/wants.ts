/** All blocks that are waited for here, each once, whoever waits; and the peers that may send them. */
import type { CID } from "multiformats/cid";
import type { Blocks } from "../../storage/blockstore/blocks.ts";
import type { Buffers } from "../../storage/blockstore/buffers.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { Partner } from "./bitswap_peer.ts";
import { cidOfParcel, keyOf, keyOfParcel, ownCid } from "./keys.ts";
import type { Parcel, Presence } from "./message.ts";
import type { Lease } from "./refcounted_buffer.ts";
import type { Company, Provider, Providers, Session } from "./session.ts";
import { type Waiter, Want } from "./want.ts";

export interface WantsParts {
  readonly blocks: Blocks;
  readonly log: NodeLog;
  /** Connects to a provider. */
  readonly reach: Company["reach"];
}

/** What came, in blocks and bytes. */
export interface Income {
  blocks: number;
  bytes: number;
  /** Blocks that were here already. */
  duplicates: number;
  duplicateBytes: number;
  /** Blocks that nobody had asked for, or with other bytes than asked for. They are not stored. */
  unwanted: number;
}

const highestPriority = 2 ** 31 - 1;
const tickMs = 250;

export class Wants implements Company {
  readonly partners = new Map<string, Partner>();
  providers: Providers | undefined;
  readonly reach: (provider: Provider, signal: AbortSignal) => Promise<void>;
  readonly income: Income = { blocks: 0, bytes: 0, duplicates: 0, duplicateBytes: 0, unwanted: 0 };
  readonly #blocks: Blocks;
  readonly #log: NodeLog;
  readonly #wants = new Map<string, Want>();
  readonly #sessions = new Set<Session>();
  readonly #waiting = new Map<AbortSignal, { readonly waiters: Set<Waiter>; readonly leave: () => void }>();
  readonly #signals = new Map<Waiter, AbortSignal>();
  readonly #queue = new Set<Want>();
  #priority = highestPriority;
  #ticking: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ blocks, log, reach }: WantsParts) {
    this.#blocks = blocks;
    this.#log = log;
    this.reach = reach;
  }

  /** See `BlockSource.fetch`. */
  fetch(session: Session, cid: CID, signal: AbortSignal | undefined, buffers?: Buffers): Promise<Uint8Array> {
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
    if (signal !== undefined) this.#follow(signal, waiter);
    if (known === undefined) {
      this.#wants.set(key, want);
      this.#ticking ??= setInterval(() => this.#tick(), tickMs).unref();
      session.drive(want);
    }
    return promise;
  }

  /** Forms of CIDs that are waited for. */
  list(): CID[] {
    return [...this.#wants.values()].map(({ cid }) => cid);
  }

  queue(want: Want): void {
    this.#queue.add(want);
  }

  join(partner: Partner): void {
    this.partners.set(partner.name, partner);
    for (const session of this.#sessions) session.join(partner);
  }

  leave(partner: Partner): void {
    if (this.partners.get(partner.name) === partner) this.partners.delete(partner.name);
    this.#missed(partner, partner.asks.overdue(true));
    for (const { asked, owners, refused } of this.#wants.values()) {
      for (const peers of [asked, owners, refused]) peers.delete(partner);
    }
  }

  /** What was on the way to or from a peer is lost. */
  broken(partner: Partner): void {
    this.#missed(partner, partner.asks.overdue(true));
  }

  /** Blocks came to this node in another way. */
  here(blocks: readonly { readonly cid: CID }[]): void {
    if (this.#wants.size === 0) return;
    for (const { cid } of blocks) {
      const want = this.#wants.get(keyOf(cid));
      if (want !== undefined && !want.arrived) void this.#look(want);
    }
  }

  /** A peer says what it has and has not. */
  told(partner: Partner, presences: readonly Presence[]): void {
    for (const { cid, have } of presences) {
      const key = keyOf(ownCid(cid));
      const awaited = partner.asks.awaits(key);
      const asked = partner.asks.told(key, have);
      const want = this.#wants.get(key);
      if (!asked || want === undefined) continue;
      if (have) {
        want.owners.add(partner);
        want.refused.delete(partner);
        for (const { session } of want.waiters) session.credit(partner);
      } else {
        want.refused.add(partner);
        want.owners.delete(partner);
        if (awaited) want.coming -= 1;
      }
      want.session?.drive(want);
    }
    this.#driveQueue();
  }

  /**
   * Blocks from a peer: those that are wanted are stored, and copies of them handed on. Resolves when that is done, with
   * the number of those that nobody had asked this peer for.
   */
  async received(partner: Partner, parcels: readonly Parcel[], memory: Lease): Promise<number> {
    const made = parcels.map(keyOfParcel);
    const keys = made.some((key) => key instanceof Promise)
      ? await Promise.all(made)
      : (made as (string | undefined)[]);
    const wanted: { readonly want: Want; readonly bytes: Uint8Array }[] = [];
    const others: { readonly parcel: Parcel; readonly key: string | undefined; readonly asked: boolean }[] = [];
    for (const [at, parcel] of parcels.entries()) {
      const bytes = parcel.data;
      const key = keys[at];
      this.income.blocks += 1;
      this.income.bytes += bytes.length;
      partner.ledger.receive(bytes.length);
      const expectation = key === undefined ? "never" : partner.asks.arrived(key, bytes.length);
      const want = key === undefined ? undefined : this.#wants.get(key);
      if (want === undefined || want.arrived) {
        others.push({ parcel, key, asked: expectation !== "never" });
        continue;
      }
      want.arrived = true;
      for (const other of want.asked) if (other !== partner) other.asks.withdraw(want.key);
      for (const { session } of want.waiters) session.credit(partner);
      wanted.push({ want, bytes });
    }
    // There is room for others now, before these are stored.
    this.#driveQueue();
    if (wanted.length > 0) await this.#store(wanted, memory);
    let unasked = 0;
    for (const { parcel, key, asked } of others) if (!(await this.#extra(parcel, key)) && !asked) unasked += 1;
    return unasked;
  }

  /** Whoever waits is told that the node closes. */
  close(): void {
    this.#closed = true;
    for (const want of this.#wants.values()) this.#settle(want, ({ reject }) => reject(failure("STORE_CLOSED")));
  }

  #nextPriority(): number {
    if (this.#priority === 1) this.#priority = highestPriority;
    return this.#priority--;
  }

  /** One listener for all that hang on a signal. */
  #follow(signal: AbortSignal, waiter: Waiter): void {
    let followed = this.#waiting.get(signal);
    if (followed === undefined) {
      const waiters = new Set<Waiter>();
      const leave = () => {
        for (const each of waiters) this.#abandon(each, signal);
      };
      followed = { waiters, leave };
      this.#waiting.set(signal, followed);
      signal.addEventListener("abort", leave, { once: true });
    }
    followed.waiters.add(waiter);
    this.#signals.set(waiter, signal);
  }

  #unfollow(waiter: Waiter): void {
    const signal = this.#signals.get(waiter);
    if (signal === undefined) return;
    this.#signals.delete(waiter);
    const followed = this.#waiting.get(signal);
    followed?.waiters.delete(waiter);
    if (followed?.waiters.size !== 0) return;
    this.#waiting.delete(signal);
    signal.removeEventListener("abort", followed.leave);
  }

  /** A caller has left. What nobody wants any more is withdrawn. */
  #abandon(waiter: Waiter, signal: AbortSignal): void {
    const { want, reject } = waiter;
    reject(want.reason(signal));
    this.#end(waiter);
    if (want.arrived) return;
    if (want.waiters.size > 0) want.session?.drive(want);
    else this.#forget(want);
  }

  /** A waiter is through. */
  #end(waiter: Waiter): void {
    const { want, session } = waiter;
    want.waiters.delete(waiter);
    this.#unfollow(waiter);
    for (const other of want.waiters) if (other.session === session) return;
    session.wants.delete(want);
    if (session.wants.size > 0) return;
    session.rest();
    this.#sessions.delete(session);
  }

  #forget(want: Want): void {
    for (const partner of want.asked) partner.asks.withdraw(want.key);
    this.#wants.delete(want.key);
    this.#queue.delete(want);
    if (this.#wants.size > 0) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
  }

  #settle(want: Want, tell: (waiter: Waiter) => void): void {
    this.#forget(want);
    for (const waiter of want.waiters) {
      tell(waiter);
      waiter.session.progress();
      this.#end(waiter);
    }
  }

  async #store(wanted: readonly { readonly want: Want; readonly bytes: Uint8Array }[], memory: Lease): Promise<void> {
    try {
      const blocks: Block[] = [];
      for (const { want, bytes } of wanted) {
        for (const cid of formsOf(want)) blocks.push({ cid, bytes, release: memory.share() });
      }
      await this.#blocks.put(blocks);
      for (const { want, bytes } of wanted) this.#settle(want, ({ resolve, buffers }) => resolve(copy(bytes, buffers)));
    } catch (reason) {
      for (const { want } of wanted) this.#settle(want, ({ reject }) => reject(reason));
    }
  }

  /** A block that is not waited for; true when it is here. */
  async #extra(parcel: Parcel, key: string | undefined): Promise<boolean> {
    const cid = key === undefined ? undefined : cidOfParcel(parcel, key);
    const here = cid !== undefined && (await this.#blocks.has(cid));
    if (here) {
      this.income.duplicates += 1;
      this.income.duplicateBytes += parcel.data.length;
    } else this.income.unwanted += 1;
    return here;
  }

  /** Gives a block that may be here by now to those who wait. */
  async #look(want: Want): Promise<void> {
    const bytes = await this.#blocks.find(want.cid).catch(() => undefined);
    if (bytes !== undefined && this.#wants.get(want.key) === want && !want.arrived) {
      this.#settle(want, ({ resolve }) => resolve(bytes));
    }
  }

  /** A peer does not send what it was to send: others are asked. */
  #missed(partner: Partner, keys: readonly string[]): void {
    for (const key of keys) {
      const want = this.#wants.get(key);
      if (want === undefined) continue;
      want.coming -= 1;
      want.refused.add(partner);
      want.session?.drive(want);
    }
    if (keys.length > 0) this.#log.write("bitswap", "debug", `${partner.name} did not send ${keys.length} blocks`);
  }

  /** Those for which there is still no room come back into the queue. */
  #driveQueue(): void {
    for (const want of [...this.#queue]) {
      this.#queue.delete(want);
      want.session?.drive(want);
    }
  }

  #tick(): void {
    for (const partner of this.partners.values()) this.#missed(partner, partner.asks.overdue());
    this.#driveQueue();
    for (const session of this.#sessions) session.tick();
    const now = performance.now();
    // It may have come between the look into the store and the asking.
    for (const want of this.#wants.values()) {
      const age = now - want.since;
      if (age >= tickMs * 4 && age < tickMs * 5) void this.#look(want);
    }
  }
}

function copy(bytes: Uint8Array, buffers: Buffers | undefined): Uint8Array {
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
