/**
 * Hosts that write, delete, merge, fail and end in random order, compared with a plain set of what
 * was acknowledged.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Block } from "#node/storage/blockstore/store.ts";
import { failure } from "#node/util/errors.ts";
import { sample } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

const HOSTS = 3;
const BLOCKS = 60;

/** Returns the same numbers for the same seed. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Known = "stored" | "gone" | "unknown";

class Model {
  readonly #random: (below: number) => number;
  readonly #store = new SharedStore();
  readonly #hosts: Host[] = [];
  readonly #known = new Map<Block, Known>();
  readonly #blocks: readonly Block[];
  readonly #loose = new Set<Block>();
  #failures = 0;

  readonly #rounds: number;

  constructor(seed: number, rounds: number) {
    this.#rounds = rounds;
    this.#random = numbersFrom(seed);
    this.#blocks = Array.from({ length: BLOCKS }, (_, at) => sample(at, 50 + this.#random(9000)));
    this.#store.log.pageSize = 7;
    this.#store.log.onStep = () => this.#mayFail();
  }

  async run(): Promise<void> {
    for (let at = 0; at < HOSTS; at += 1) this.#hosts.push(await this.#open());
    for (let round = 0; round < this.#rounds; round += 1) {
      // Sometimes a store fails a few times; a caller that tries again succeeds in the end.
      this.#failures = this.#random(3) === 0 ? 1 + this.#random(8) : 0;
      await Promise.all(
        this.#hosts.map((_, at) =>
          this.#step(
            at,
            this.#blocks.filter((_, of) => (of + round) % HOSTS === at),
          ),
        ),
      );
    }
    this.#failures = 0;
    await this.#check();
  }

  #mayFail(): void {
    if (this.#failures === 0 || this.#random(6) > 0) return;
    this.#failures -= 1;
    throw failure("STORE_UNAVAILABLE", { reason: "so it is" });
  }

  #open(folder?: string): Promise<Host> {
    const mayFail = () => this.#mayFail();
    return this.#store.open({
      ...(folder !== undefined && { folder }),
      segmentBytes: 20_000,
      cacheBytes: 100_000,
      graceMs: 0,
      faults: { before: mayFail, after: mayFail },
    });
  }

  /** One host does one thing with blocks that no other host writes meanwhile. */
  async #step(at: number, mine: readonly Block[]): Promise<void> {
    const { blocks } = this.#hosts[at] as Host;
    const some = mine.filter(() => this.#random(4) === 0);
    const what = this.#random(20);
    if (what < 8) {
      await this.#try(some, "stored", async () => {
        await blocks.put(some);
        await blocks.sync();
      });
    } else if (what < 10) await this.#try(some, "unknown", () => blocks.put(some));
    else if (what < 14) await this.#try(some, "gone", () => blocks.delete(some.map(({ cid }) => cid)));
    else if (what < 16) await this.#try([], "stored", () => blocks.compact());
    else if (what === 16) await this.#end(at);
    else if (what === 17) this.#store.log.trim();
    else await this.#try([], "stored", () => this.#read(blocks, mine));
  }

  /** Updates the expected state of blocks after an operation succeeded or failed midway. */
  async #try(some: readonly Block[], after: Known, run: () => Promise<unknown>): Promise<void> {
    for (const block of some) this.#known.set(block, "unknown");
    // Until it succeeds, a host may have the block and write it later, whoever removes it
    // meanwhile.
    const isLoose = some.map((block) => this.#loose.has(block));
    if (after !== "gone") for (const block of some) this.#loose.add(block);
    try {
      await run();
    } catch (error) {
      if (!["STORE_UNAVAILABLE", "SESSION_LOST"].includes((error as { code: string }).code)) throw error;
      return;
    }
    for (const [at, block] of some.entries()) {
      if (after === "stored" && !isLoose[at]) this.#loose.delete(block);
      this.#known.set(block, after === "gone" && isLoose[at] ? "unknown" : after);
    }
  }

  /**
   * The host ends before it can write anything more. Another one replaces it, with or without its
   * folder.
   */
  async #end(at: number): Promise<void> {
    const host = this.#hosts[at] as Host;
    const { log, folder, objects, blocks } = host;
    this.#store.end(host);
    this.#store.log.endSession(log.session);
    objects.faults = { before: () => Promise.reject(failure("STORE_UNAVAILABLE", { reason: "it has ended" })) };
    await blocks.close().catch(() => undefined);
    await log.close();
    this.#hosts[at] = await this.#open(this.#random(2) === 0 ? undefined : folder);
  }

  async #read(blocks: Host["blocks"], mine: readonly Block[]): Promise<void> {
    for (const block of mine) {
      const got = await blocks.get(block.cid);
      if (got !== undefined) assert.deepEqual(Buffer.from(got), Buffer.from(block.bytes));
      const known = this.#known.get(block);
      if (known === "stored") assert.ok(got, `${block.cid} was stored`);
      if (known === "gone") assert.equal(got, undefined, `${block.cid} was removed`);
    }
  }

  async #check(): Promise<void> {
    for (const { blocks } of this.#hosts) await blocks.sync();
    const [first] = this.#hosts as [Host];
    await first.blocks.compact();
    await first.blocks.compact();
    this.#hosts.push(await this.#open());
    const all: string[] = [];
    for (const { blocks } of this.#hosts) {
      await this.#read(blocks, this.#blocks);
      const keys = (await Array.fromAsync(blocks.keys())).map(String).sort();
      all.push(keys.join());
      assert.equal((await blocks.stat()).blocks, keys.length);
    }
    assert.equal(new Set(all).size, 1);
    assert.deepEqual(await Array.fromAsync(first.blocks.upkeep.verify()), []);
    for (const host of this.#hosts.slice(1)) await host.close();
    await first.blocks.upkeep.deleteOrphans();
    await first.blocks.compact();
    const { segments } = await first.blocks.upkeep.metrics();
    // Failed uploads of the first host may have left more objects.
    assert.ok(this.#store.contents.size >= segments);
    await first.close();
    const sweeper = await this.#open();
    await sweeper.blocks.upkeep.deleteOrphans();
    await sweeper.blocks.compact();
    const retained = (await sweeper.blocks.upkeep.metrics()).segments;
    assert.equal(this.#store.contents.size, retained);
    assert.deepEqual(await Array.fromAsync(sweeper.blocks.upkeep.verify()), []);
    await sweeper.close();
  }
}

/** For more seeds, run `SEEDS=1,2,3 node test/run.mjs` with the path of this file. */
const requestedSeeds = process.env.SEEDS?.split(",").map(Number);
const seeds = requestedSeeds ?? [1028, 2009, 4028];
const rounds = requestedSeeds === undefined ? 12 : 40;
// Without a limit, a host that waits forever would block the whole run.
const timeout = 120_000 * seeds.length;
test("acknowledged blocks exist and removed ones do not, whatever hosts do and meet", {
  timeout,
}, async (t) => {
  for (const seed of seeds) await t.test(`seed ${seed}`, () => new Model(seed, rounds).run());
});
