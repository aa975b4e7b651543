/**
 * Hosts of a shared store whose blocks are numbers in memory, with a memory log. They test what a
 * collection must not break.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import type { RetainedBlocks } from "#node/storage/blockstore/retained_blocks.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { CondemnableBlocks } from "#node/storage/shared/gc/blocks.ts";
import { Collections } from "#node/storage/shared/gc/collections.ts";
import type { Applier, BlockList, Commit, Position, SharedLog } from "#node/storage/shared/log.ts";
import { SharedMetadata } from "#node/storage/shared/metadata.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import type { MemoryLog } from "#test/support/engines/memory_log.ts";

/** A CID that is a number, for readable tests. */
export function cidOf(number: number): CID {
  const digest = new Uint8Array(32).fill(255);
  new DataView(digest.buffer).setUint32(0, number);
  return CID.createV1(0x55, create(0x12, digest));
}
export const numberOf = (cid: CID): number =>
  new DataView(cid.multihash.digest.buffer, cid.multihash.digest.byteOffset).getUint32(0);

/** Each block links to some blocks with smaller numbers. */
export type Dag = readonly (readonly number[])[];

export function below(dag: Dag, root: number, found = new Set<number>()): Set<number> {
  if (found.has(root)) return found;
  found.add(root);
  for (const link of dag[root] ?? []) below(dag, link, found);
  return found;
}

/** The segments by name, which all hosts share in addition to the log. */
export class Bucket {
  readonly segments = new Map<string, readonly number[]>();
}

interface Copy {
  readonly number: number;
  readonly position: Position;
  /** The collection that has condemned the block. */
  epoch: number;
}

class ModelBlocks implements Applier, CondemnableBlocks {
  readonly position = 0;
  readonly #log: SharedLog;
  readonly #bucket: Bucket;
  #copies: Copy[] = [];
  /** Blocks that were put and are not in a segment. */
  readonly #open = new Set<number>();
  /** Restored blocks by epoch. */
  readonly #suspended = new Map<number, Set<number>>();
  #change = Promise.withResolvers<void>();
  #sealed = 0;
  #isClosed = false;

  constructor(log: SharedLog, bucket: Bucket) {
    this.#log = log;
    this.#bucket = bucket;
    log.follow(this);
  }

  apply({ position, entries }: Commit): void {
    for (const entry of entries) {
      if (entry.kind === "segment") {
        for (const number of this.#bucket.segments.get(entry.segment.id) ?? []) {
          this.#copies.push({ number, position, epoch: 0 });
        }
      }
      if (entry.kind === "condemned") {
        const list = numbers(entry.list);
        for (const copy of this.#copies) {
          if (copy.position <= entry.upTo && list.has(copy.number)) copy.epoch = entry.epoch;
        }
      }
      if (entry.kind === "removed") {
        const rescued = numbers(entry.rescued);
        this.#copies = this.#copies.filter((copy) => copy.epoch !== entry.epoch || rescued.has(copy.number));
        for (const copy of this.#copies) if (copy.epoch === entry.epoch) copy.epoch = 0;
        this.#suspended.delete(entry.epoch);
        this.#changed();
      }
    }
  }

  reset(): void {
    this.#copies = [];
    this.#suspended.clear();
    this.#changed();
  }

  /** Wakes all waiting callers. */
  close(): void {
    this.#isClosed = true;
    this.#changed();
  }

  /** Yields every block that counts as stored. */
  get all(): Set<number> {
    return new Set([...this.#open, ...this.#copies.map(({ number }) => number)]);
  }

  #isHidden({ number, epoch }: Copy): boolean {
    const restored = this.#suspended.get(epoch);
    return restored !== undefined && !restored.has(number);
  }

  #has(number: number): boolean {
    return this.#open.has(number) || this.#copies.some((copy) => copy.number === number && !this.#isHidden(copy));
  }

  /** Stores a block unless it is already stored. */
  put(number: number): void {
    if (!this.#has(number)) this.#open.add(number);
  }

  async has(number: number): Promise<boolean> {
    for (let looks = 0; ; ) {
      if (this.#isClosed) throw new Error("closed");
      if (this.#has(number)) return true;
      if (this.#copies.some((copy) => copy.number === number)) await this.#change.promise;
      else if (looks++ > 0) return false;
      await this.#log.refresh();
    }
  }

  async sync(): Promise<void> {
    const sealed = [...this.#open];
    if (sealed.length === 0) return;
    this.#sealed += 1;
    const id = `${this.#log.session.toString(36)}-${this.#sealed}`;
    this.#bucket.segments.set(id, sealed);
    const segment = { id, bytes: 1, blocks: sealed.length };
    await this.#log.commit(() => ({ entries: [{ kind: "segment", segment }], result: undefined }));
    for (const number of sealed) this.#open.delete(number);
  }

  async *stored(upTo: Position): AsyncGenerator<CID> {
    const found = this.#copies.filter(({ position, epoch }) => position <= upTo && epoch === 0);
    for (const { number } of found) yield cidOf(number);
  }

  find = async (cid: CID): Promise<Uint8Array | undefined> => {
    const number = numberOf(cid);
    const isHere = this.#open.has(number) || this.#copies.some((copy) => copy.number === number);
    return isHere ? new Uint8Array() : undefined;
  };

  forms = async (cid: CID): Promise<readonly CID[]> => (this.#has(numberOf(cid)) ? [cid] : []);

  async suspend(epoch: number): Promise<void> {
    if (this.#copies.some((copy) => copy.epoch === epoch) && !this.#suspended.has(epoch)) {
      this.#suspended.set(epoch, new Set());
    }
  }

  async condemned(epoch: number, cids: readonly CID[]): Promise<readonly CID[]> {
    return cids.filter((cid) => this.#copies.some((copy) => copy.number === numberOf(cid) && copy.epoch === epoch));
  }

  async restore(epoch: number, cids: readonly CID[]): Promise<void> {
    for (const cid of cids) this.#suspended.get(epoch)?.add(numberOf(cid));
    this.#changed();
  }

  async writeList(cids: AsyncIterable<CID> | Iterable<CID>): Promise<BlockList> {
    const list: Uint8Array[] = [];
    for await (const { bytes } of cids) list.push(bytes.slice());
    return { cids: list };
  }

  async *readList(list: BlockList): AsyncGenerator<CID> {
    if ("cids" in list) for (const bytes of list.cids) yield CID.decode(bytes);
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

const numbers = (list: BlockList): Set<number> =>
  new Set("cids" in list ? list.cids.map((bytes) => numberOf(CID.decode(bytes))) : []);

/** Works like a node: adding takes the shared lock; fetching is guarded and repeated. */
export class Host {
  readonly log: SharedLog;
  readonly metadata: SharedMetadata;
  readonly blocks: ModelBlocks;
  readonly collections: Collections;
  readonly #dag: Dag;
  readonly #lock = new SharedLock();
  readonly #guards = new Set<{ readonly root: number }>();
  readonly #wait: () => Promise<void>;

  private constructor(
    log: SharedLog,
    metadata: SharedMetadata,
    bucket: Bucket,
    dag: Dag,
    wait: () => Promise<void>,
    responseMs?: number,
  ) {
    this.log = log;
    this.metadata = metadata;
    this.blocks = new ModelBlocks(log, bucket);
    this.#dag = dag;
    this.#wait = wait;
    this.collections = new Collections({
      log,
      metadata,
      blocks: this.blocks,
      isRoot: (key) => key.startsWith("pins/"),
      pollMs: 1,
      settleMs: 5,
      responseMs: responseMs,
    });
    this.collections.serve({
      alone: async (run) => {
        const release = await this.#lock.acquireExclusive();
        return run().finally(release);
      },
      voidCalls: () => this.#lock.voidCalls(),
      mark: (retained, find) => this.#mark(retained, find),
      guarded: (find) => this.#guarded(find),
    });
  }

  /** `wait` is called between all steps; `responseMs` is the option of collections. */
  static async open(
    shared: MemoryLog,
    bucket: Bucket,
    dag: Dag,
    wait = (): Promise<void> => nextTurn(),
    responseMs?: number,
  ): Promise<Host> {
    const log = shared.open();
    const host = new Host(log, await SharedMetadata.open(log, memoryMetadata()), bucket, dag, wait, responseMs);
    await host.collections.start();
    return host;
  }

  async pins(): Promise<number[]> {
    const found: number[] = [];
    for await (const [key] of this.metadata.range({ prefix: "pins/" })) found.push(Number(key.slice(5)));
    return found;
  }

  async *#guarded(find: (cid: CID) => Promise<unknown>): AsyncGenerator<CID> {
    for (const { root } of this.#guards) {
      for (const number of below(this.#dag, root)) if (await find(cidOf(number))) yield cidOf(number);
    }
  }

  async #mark(retained: RetainedBlocks, find: (cid: CID) => Promise<unknown>): Promise<void> {
    for (const root of await this.pins()) {
      for (const number of below(this.#dag, root)) {
        if (!retained.walked.add(cidOf(number))) continue;
        await this.#wait();
        if ((await find(cidOf(number))) === undefined) throw new Error(`${number} is missing below ${root}`);
      }
    }
  }

  /** Puts all blocks of a DAG, then pins it. */
  async add(root: number): Promise<void> {
    await this.#lock.withShared(async () => {
      for (const number of [...below(this.#dag, root)].reverse()) {
        this.blocks.put(number);
        await this.#wait();
      }
      await this.#pin(root);
    });
  }

  /**
   * Adds a DAG, but releases the lock in between: it relies on being asked which blocks it refers
   * to.
   */
  async addSlowly(root: number): Promise<void> {
    const guard = { root };
    this.#guards.add(guard);
    const { session } = this.log;
    const blocks = [...below(this.#dag, root)].reverse();
    const half = Math.ceil(blocks.length / 2);
    const put = (part: readonly number[]) =>
      this.#lock.withShared(async () => {
        for (const number of part) this.blocks.put(number);
        await this.blocks.sync();
      });
    try {
      await put(blocks.slice(0, half));
      for (let waits = 0; waits < 150; waits += 1) await this.#wait();
      await put(blocks.slice(half));
      await this.#lock.withShared(() => this.#pin(root, session));
    } finally {
      this.#guards.delete(guard);
    }
  }

  /** Puts blocks that nothing retains. */
  async put(root: number): Promise<void> {
    await this.#lock.withShared(async () => {
      for (const number of below(this.#dag, root)) this.blocks.put(number);
      await this.blocks.sync();
    });
  }

  /** Pins a DAG if all of it is stored somewhere. */
  async pin(root: number): Promise<void> {
    const guard = { root };
    this.#guards.add(guard);
    const fetch = async () => {
      for (const number of below(this.#dag, root)) {
        await this.#wait();
        if (!(await this.blocks.has(number))) throw new Error(`${number} is not stored`);
      }
    };
    await this.#lock.retryOptimistically(fetch, () => this.#pin(root)).finally(() => this.#guards.delete(guard));
  }

  /** Runs in the session in which it began, because another session was not asked. */
  async #pin(root: number, session = this.log.session): Promise<void> {
    await this.blocks.sync();
    await this.#wait();
    await this.metadata.transaction((writer) => {
      if (this.log.session !== session) throw new Error("the session is another one");
      writer.put(`pins/${root}`, new Uint8Array());
    });
  }

  async unpin(root: number): Promise<void> {
    await this.metadata.transaction((writer) => writer.delete(`pins/${root}`));
  }

  async close(): Promise<void> {
    this.blocks.close();
    await this.collections.close();
    await this.metadata.close();
    await this.log.close();
  }
}
