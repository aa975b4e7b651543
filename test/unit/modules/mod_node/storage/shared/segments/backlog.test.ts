/** An empty index: blocks are found by the log before, while and after it is built. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { cidOf, formOf, keyOf } from "#node/storage/blockstore/segments/format.ts";
import type { Commit, Entry } from "#node/storage/shared/log.ts";
import { BlockIndex } from "#node/storage/shared/segments/block_index.ts";
import { cidOfCondemned } from "#node/storage/shared/segments/index_changes.ts";
import { IndexFeed } from "#node/storage/shared/segments/index_feed.ts";
import { type IndexedBlock, sectionBytes } from "#node/storage/shared/segments/index_file.ts";
import { SegmentNumbers } from "#node/storage/shared/segments/numbers.ts";
import { failure } from "#node/util/errors.ts";
import { seeded } from "#test/support/seeded.ts";

/** A timeout in milliseconds: a bug in this code may make a caller wait forever. */
const bound = { timeout: 120_000 };

type Random = (below: number) => number;

interface Stored {
  readonly cid: CID;
  readonly segment: string;
  readonly block: IndexedBlock;
  readonly position: number;
  readonly epoch: number;
}

const idOf = (cid: CID) => `${formOf(cid)} ${keyOf(cid.multihash.bytes)}`;

/** Two forms of each multihash; some multihashes have the same beginning. */
const cids = Array.from({ length: 24 }, (_, at) => {
  const multihash = Buffer.from(`1220${"00".repeat(32)}`, "hex");
  multihash.writeUInt32BE(at % 3 === 0 ? 5 : at * 1e8, 2);
  multihash[20] = at;
  return [cidOf(0, multihash), cidOf(86, multihash)];
}).flat();

/** A random log, and the blocks that it stores. */
class History {
  readonly commits: Commit[] = [];
  readonly stored = new Map<string, Stored>();
  /** The state after each commit. */
  readonly moments: ReadonlyMap<string, Stored>[] = [];
  /** The blocks of each segment. */
  readonly blocks = new Map<string, readonly IndexedBlock[]>();
  readonly segments = new Set<string>();
  readonly #random: Random;
  #undecided: number | undefined;
  #epochs = 0;

  constructor(random: Random, length: number) {
    this.#random = random;
    while (this.commits.length < length) this.#commit();
  }

  #commit(): void {
    const position = this.commits.length + 1;
    const entries = [this.#entry(position)].flatMap((entry) => entry ?? []);
    this.commits.push({ position, session: 1, id: `id ${position}`, entries });
    this.moments.push(new Map(this.stored));
  }

  #entry(position: number): Entry | undefined {
    const kind = this.#random(6);
    if (kind === 0 && this.#undecided === undefined) return this.#condemn(position);
    if (kind === 1 && this.#undecided !== undefined) return this.#decide(this.#undecided);
    if (kind === 2 && this.#undecided === undefined) return this.#merge(position);
    return { kind: "segment", segment: this.#segment(position, this.#some()) };
  }

  #some(): CID[] {
    return cids.filter(() => this.#random(8) === 0);
  }

  #segment(position: number, expectedBlocks: readonly CID[]) {
    const id = `1-${position}`;
    const blocks = expectedBlocks.map((cid, at) => {
      const block = { multihash: cid.multihash.bytes, form: formOf(cid), offset: position * 100 + at, length: 10 };
      this.stored.set(idOf(cid), { cid, segment: id, block, position, epoch: 0 });
      return block;
    });
    this.segments.add(id);
    this.blocks.set(id, blocks);
    return { id, bytes: 1000, blocks: blocks.length };
  }

  #condemn(position: number): Entry {
    this.#epochs += 1;
    const epoch = this.#epochs;
    this.#undecided = epoch;
    const upTo = Math.max(0, position - 1 - this.#random(3));
    const list = this.#some();
    for (const cid of list) {
      const found = this.stored.get(idOf(cid));
      if (found !== undefined && found.position <= upTo) this.stored.set(idOf(cid), { ...found, epoch });
    }
    return { kind: "condemned", epoch, upTo, list: { cids: list.map(({ bytes }) => bytes) } };
  }

  #decide(epoch: number): Entry {
    this.#undecided = undefined;
    const condemned = [...this.stored].filter(([, found]) => found.epoch === epoch);
    const rescued = condemned.filter(() => this.#random(2) === 0);
    for (const [id] of condemned) this.stored.delete(id);
    for (const [id, found] of rescued) this.stored.set(id, { ...found, epoch: 0 });
    return { kind: "removed", epoch, rescued: { cids: rescued.map(([, { cid }]) => cid.bytes) } };
  }

  #merge(position: number): Entry | undefined {
    const segments = [...this.segments].filter(() => this.#random(3) === 0);
    const used = [...this.stored.values()].filter(({ segment }) => segments.includes(segment));
    for (const id of segments) this.segments.delete(id);
    const by =
      used.length === 0
        ? []
        : [
            this.#segment(
              position,
              used.map(({ cid }) => cid),
            ),
          ];
    return { kind: "replaced", segments, by };
  }
}

const isTrue = () => true;
const isFalse = () => false;

/** A feed whose fetches may fail. */
class Subject {
  readonly feed: IndexFeed;
  readonly blockIndex: BlockIndex;
  /** Number of the next fetches that fail. */
  failures = 0;

  constructor(blockIndex: BlockIndex, { blocks }: History) {
    this.blockIndex = blockIndex;
    this.feed = new IndexFeed({
      index: blockIndex,
      numbers: new SegmentNumbers([]),
      load: async ({ id }) => this.#fetched(blocks.get(id) ?? []),
      readList: async (list) => this.#fetched("cids" in list ? list.cids : []),
      onFound: () => {},
      onDecided: () => {},
      onDropped: () => {},
    });
  }

  /** Tries again however often fetching fails. */
  async settled(): Promise<void> {
    while (!(await this.feed.settled().then(isTrue, isFalse)));
  }

  async indexed(): Promise<void> {
    while (!(await this.feed.indexed().then(isTrue, isFalse)));
  }

  check(find: BlockIndex["find"], stored: ReadonlyMap<string, Stored>, name: string): void {
    for (const cid of cids) {
      const found = find(cid.multihash.bytes).find(({ form }) => form === formOf(cid));
      const fetchErrors = stored.get(idOf(cid));
      const segment = found && this.blockIndex.rows.get(found.segment)?.id;
      assert.deepEqual(
        found && [segment, found.offset, found.length, found.epoch],
        fetchErrors && [fetchErrors.segment, fetchErrors.block.offset, fetchErrors.block.length, fetchErrors.epoch],
        `${name}: ${cid}`,
      );
    }
  }

  #fetched<T>(what: T): T {
    if (this.failures === 0) return what;
    this.failures -= 1;
    throw failure("STORE_UNAVAILABLE", { reason: "the test wants it so" });
  }
}

/** Sometimes the log starts again, and is read to its end. */
async function play(subject: Subject, history: History, random: Random, name: string): Promise<void> {
  const { feed } = subject;
  const { commits, moments } = history;
  for (let applied = 0; applied < commits.length; ) {
    subject.failures = random(4) === 0 ? random(4) : 0;
    const what = random(16);
    if (what < 3) feed.caughtUp();
    if (what === 3) {
      feed.reset();
      for (const commit of commits.slice(0, applied)) feed.apply(commit);
    }
    const next = commits.slice(applied, applied + 1 + random(5));
    for (const commit of next) feed.apply(commit);
    applied += next.length;
    if (random(3) === 0) continue;
    await subject.settled();
    subject.check(
      (multihash) => feed.find(multihash),
      moments[applied - 1] as History["stored"],
      `${name}, ${applied}`,
    );
  }
}

test("blocks are found as the log has them, at any state of the index", bound, async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const numbers = seeded(seed);
    const random = (below: number) => Math.floor(numbers() * below);
    const folder = await mkdtemp(join(tmpdir(), "modhost-backlog-"));
    const blockIndex = await BlockIndex.open(folder, () => {});
    const history = new History(random, 60);
    const subject = new Subject(blockIndex, history);
    const { feed } = subject;
    const name = `seed ${seed}`;
    try {
      await play(subject, history, random, name);
      feed.caughtUp();
      await subject.indexed();
      // The index itself has the same content, and its counts are right.
      const { stored, segments } = history;
      subject.check((multihash) => blockIndex.find(multihash), stored, `${name}, the index`);
      const condemned = [...stored.values()].filter(({ epoch }) => epoch !== 0);
      assert.deepEqual(blockIndex.state, {
        position: 60,
        commit: "id 60",
        locations: stored.size,
        condemned: condemned.length,
      });
      assert.deepEqual(new Set([...blockIndex.rows.values()].map(({ id }) => id)), segments);
      for (const { id, live } of blockIndex.rows.values()) {
        const own = [...stored.values()].filter(({ segment }) => segment === id);
        assert.equal(
          live,
          own.reduce((sum, { block }) => sum + sectionBytes(block), 0),
        );
      }
      for (const { epoch, cid } of condemned) {
        const listed = blockIndex.condemnedPage(epoch, undefined, 1000).map(cidOfCondemned);
        assert.ok(listed.includes(keyOf(cid.bytes)), `${name}: ${cid} is not listed as condemned`);
      }
    } finally {
      await feed.close();
      await blockIndex.close();
      await rm(folder, { recursive: true, force: true });
    }
  }
});
