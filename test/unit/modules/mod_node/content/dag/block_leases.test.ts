import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BlockLeases, LeaseBudget } from "#node/content/dag/block_leases.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { remember } from "#node/storage/blockstore/origins.ts";

const KIB = 1024;
const BLOCK = 512 * KIB;
const SLICE = 64 * KIB;
const LIMITS = { whole: 4 * BLOCK, sliced: 2 * BLOCK, retainMs: 10 };

/** Reads blocks into buffers of a pool, and counts those that were not released yet. */
class Store {
  readonly #pool = new BufferPool();
  readonly #unreleased = new Set<ArrayBufferLike>();
  reads = 0;
  most = 0;

  async read(at: number): Promise<Uint8Array> {
    this.reads += 1;
    const bytes = this.#pool.take(BLOCK);
    fill(bytes, at);
    this.#unreleased.add(bytes.buffer);
    this.most = Math.max(this.most, this.unreleasedBytes);
    remember(bytes, () => this.read(at));
    return bytes;
  }

  release(piece: Uint8Array): void {
    this.#unreleased.delete(piece.buffer);
    this.#pool.release(piece);
  }

  get unreleasedBytes(): number {
    return this.#unreleased.size * BLOCK;
  }
}

/** Fills a block with bytes that differ for each block and each of its slices. */
function fill(block: Uint8Array, number: number): void {
  for (let at = 0; at < BLOCK; at += SLICE) block.fill(number * 16 + at / SLICE, at, at + SLICE);
}

/**
 * A client as the server sees it. The test says when it receives what was written. One further
 * piece is requested ahead.
 */
class Client {
  readonly leases: BlockLeases;
  readonly #source: AsyncGenerator<Uint8Array, void, undefined>;
  #ahead: Promise<IteratorResult<Uint8Array, void>> | undefined;
  /** The piece that is being written. */
  unsent: Uint8Array | undefined;
  readonly pieces: Uint8Array[] = [];

  constructor(store: Store, budget: LeaseBudget, blocks: number) {
    this.leases = new BlockLeases({ release: (piece) => store.release(piece), budget });
    const source = async function* () {
      for (let at = 0; at < blocks; at += 1) yield await store.read(at);
    };
    this.#source = this.leases.pieces(source());
  }

  /** Resolves to true when there is a piece to receive, and to false at the end. */
  async begin(): Promise<boolean> {
    const { done, value } = await (this.#ahead ?? this.#source.next());
    if (done === true) return false;
    this.unsent = value;
    this.#ahead = this.#source.next();
    this.#ahead.catch(() => undefined);
    return true;
  }

  take(): void {
    const piece = this.unsent as Uint8Array;
    this.unsent = undefined;
    this.pieces.push(piece.slice());
    this.leases.release(piece);
  }

  async readAll(): Promise<Buffer> {
    for (let more = this.unsent !== undefined || (await this.begin()); more; more = await this.begin()) this.take();
    return Buffer.concat(this.pieces);
  }
}

function expected(blocks: number): Buffer {
  const bytes = Buffer.alloc(blocks * BLOCK);
  for (let at = 0; at < blocks; at += 1) fill(bytes.subarray(at * BLOCK), at);
  return bytes;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("blocks for slow clients", () => {
  test("stay within the memory limit for sixty clients, and reach all of them completely", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = new Store();
    const budget = new LeaseBudget(LIMITS);
    const clients = Array.from({ length: 60 }, () => new Client(store, budget, 3));
    // One after the other, as the store returns them.
    for (const client of clients) {
      assert.equal(await client.begin(), true);
      await settled();
    }
    // One more block belongs to the reader that has just received it.
    const most = LIMITS.whole + LIMITS.sliced + BLOCK;
    assert.ok(store.most <= most, `${store.most / BLOCK} blocks were in use`);
    assert.equal(clients.filter(({ unsent }) => (unsent as Uint8Array).length > SLICE).length, 2);
    t.mock.timers.tick(LIMITS.retainMs);
    await settled();
    t.mock.timers.tick(LIMITS.retainMs);
    assert.equal(store.unreleasedBytes, LIMITS.whole, "only blocks without a copy");
    t.mock.timers.reset();
    const all = await Promise.all(clients.map((client) => client.readAll()));
    for (const bytes of all) assert.ok(bytes.equals(expected(3)));
    assert.ok(store.most <= most + BLOCK, `${store.most / BLOCK} blocks were in use`);
    assert.deepEqual([store.unreleasedBytes, budget.leasedBytes], [0, 0]);
  });

  test("are sent without a copy while there is room", async () => {
    const store = new Store();
    const client = new Client(store, new LeaseBudget(LIMITS), 8);
    assert.ok((await client.readAll()).equals(expected(8)));
    assert.equal(client.pieces.length, 8);
    assert.equal(store.reads, 8);
  });

  test("are not read again for a client that receives its slices at once", async () => {
    const store = new Store();
    const client = new Client(store, new LeaseBudget({ ...LIMITS, whole: 0, retainMs: 60_000 }), 2);
    assert.ok((await client.readAll()).equals(expected(2)));
    assert.equal(client.pieces.length, (2 * BLOCK) / SLICE);
    assert.equal(store.reads, 2);
  });

  test("are sent without a copy again as soon as there is room", async () => {
    const store = new Store();
    const budget = new LeaseBudget({ ...LIMITS, whole: BLOCK });
    budget.lease(BLOCK);
    const client = new Client(store, budget, 1);
    await client.begin();
    budget.endLease(BLOCK);
    assert.ok((await client.readAll()).equals(expected(1)));
    assert.deepEqual(
      client.pieces.map(({ length }) => length),
      [SLICE, SLICE, BLOCK - 2 * SLICE],
    );
    assert.equal(budget.leasedBytes, 0);
  });

  test("are released when the client disconnects, even while the lease waits for it", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = new Store();
    const budget = new LeaseBudget({ ...LIMITS, whole: BLOCK, sliced: BLOCK });
    const clients = Array.from({ length: 4 }, () => new Client(store, budget, 3));
    for (const client of clients) await client.begin();
    t.mock.timers.tick(LIMITS.retainMs);
    await settled();
    for (const { leases } of clients) leases.end();
    t.mock.timers.tick(LIMITS.retainMs);
    await settled();
    assert.equal(budget.leasedBytes, 0);
  });
});
