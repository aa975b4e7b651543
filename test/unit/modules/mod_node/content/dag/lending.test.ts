import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Lending, LendingBudget } from "#node/content/dag/lending.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { remember } from "#node/storage/blockstore/origins.ts";

const KIB = 1024;
const BLOCK = 512 * KIB;
const SLICE = 64 * KIB;
const LIMITS = { whole: 4 * BLOCK, sliced: 2 * BLOCK, moment: 10 };

/** Blocks that are read into buffers of a pool; counts those that nobody has given back. */
class Store {
  readonly #pool = new BufferPool();
  readonly #lent = new Set<ArrayBufferLike>();
  reads = 0;
  most = 0;

  async read(at: number): Promise<Uint8Array> {
    this.reads += 1;
    const bytes = this.#pool.take(BLOCK);
    fill(bytes, at);
    this.#lent.add(bytes.buffer);
    this.most = Math.max(this.most, this.held);
    remember(bytes, () => this.read(at));
    return bytes;
  }

  release(piece: Uint8Array): void {
    this.#lent.delete(piece.buffer);
    this.#pool.release(piece);
  }

  get held(): number {
    return this.#lent.size * BLOCK;
  }
}

/** Each block, and each slice of it, has other bytes. */
function fill(block: Uint8Array, number: number): void {
  for (let at = 0; at < BLOCK; at += SLICE) block.fill(number * 16 + at / SLICE, at, at + SLICE);
}

/**
 * A client as the server sees it: it takes what is written when the test says so, and one piece is
 * asked for ahead.
 */
class Client {
  readonly lending: Lending;
  readonly #source: AsyncGenerator<Uint8Array, void, undefined>;
  #ahead: Promise<IteratorResult<Uint8Array, void>> | undefined;
  /** Is being written. */
  unsent: Uint8Array | undefined;
  readonly pieces: Uint8Array[] = [];

  constructor(store: Store, budget: LendingBudget, blocks: number) {
    this.lending = new Lending({ release: (piece) => store.release(piece), budget });
    const source = async function* () {
      for (let at = 0; at < blocks; at += 1) yield await store.read(at);
    };
    this.#source = this.lending.pieces(source());
  }

  /** Resolves when it has something to take; false at the end. */
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
    this.lending.release(piece);
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

describe("blocks for clients that are slow", () => {
  test("are held within bounds for sixty of them, and come whole to each in the end", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = new Store();
    const budget = new LendingBudget(LIMITS);
    const clients = Array.from({ length: 60 }, () => new Client(store, budget, 3));
    // One after the other, as the store gives them out.
    for (const client of clients) {
      assert.equal(await client.begin(), true);
      await settled();
    }
    // One more block is in the hands of the reader that has just got it.
    const most = LIMITS.whole + LIMITS.sliced + BLOCK;
    assert.ok(store.most <= most, `${store.most / BLOCK} blocks were held`);
    assert.equal(clients.filter(({ unsent }) => (unsent as Uint8Array).length > SLICE).length, 2);
    t.mock.timers.tick(LIMITS.moment);
    await settled();
    t.mock.timers.tick(LIMITS.moment);
    assert.equal(store.held, LIMITS.whole, "only what is lent as it is");
    t.mock.timers.reset();
    const all = await Promise.all(clients.map((client) => client.readAll()));
    for (const bytes of all) assert.ok(bytes.equals(expected(3)));
    assert.ok(store.most <= most + BLOCK, `${store.most / BLOCK} blocks were held`);
    assert.deepEqual([store.held, budget.held], [0, 0]);
  });

  test("go out as they are while there is room", async () => {
    const store = new Store();
    const client = new Client(store, new LendingBudget(LIMITS), 8);
    assert.ok((await client.readAll()).equals(expected(8)));
    assert.equal(client.pieces.length, 8);
    assert.equal(store.reads, 8);
  });

  test("are not read again for a client that takes its slices at once", async () => {
    const store = new Store();
    const client = new Client(store, new LendingBudget({ ...LIMITS, whole: 0, moment: 60_000 }), 2);
    assert.ok((await client.readAll()).equals(expected(2)));
    assert.equal(client.pieces.length, (2 * BLOCK) / SLICE);
    assert.equal(store.reads, 2);
  });

  test("that has room again is given the rest as it is", async () => {
    const store = new Store();
    const budget = new LendingBudget({ ...LIMITS, whole: BLOCK });
    budget.lend(BLOCK);
    const client = new Client(store, budget, 1);
    await client.begin();
    budget.giveBack(BLOCK);
    assert.ok((await client.readAll()).equals(expected(1)));
    assert.deepEqual(
      client.pieces.map(({ length }) => length),
      [SLICE, SLICE, BLOCK - 2 * SLICE],
    );
    assert.equal(budget.held, 0);
  });

  test("are given back when the client leaves, also while it is waited for", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = new Store();
    const budget = new LendingBudget({ ...LIMITS, whole: BLOCK, sliced: BLOCK });
    const clients = Array.from({ length: 4 }, () => new Client(store, budget, 3));
    for (const client of clients) await client.begin();
    t.mock.timers.tick(LIMITS.moment);
    await settled();
    for (const { lending } of clients) lending.end();
    t.mock.timers.tick(LIMITS.moment);
    await settled();
    assert.equal(budget.held, 0);
  });
});
