import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { CID } from "multiformats/cid";
import { Pins, pinKey } from "#node/content/pins/pins.ts";
import { collectingHost } from "#node/content/pins/shared_gc.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { HostGroup } from "../../../storage/shared/gc/host_group.ts";
import { bytesOf, Chance, Contents, Graph, outcomeOf, type Roots, retainedBy } from "./model.ts";

const { MODHOST_GC_SEEDS: seeds = "25", MODHOST_GC_FIRST: first = "1" } = process.env;

const none: Roots = { recursive: [], direct: [], present: [], guarded: [] };

/** One host that takes part in a collection. */
class Host {
  readonly blocks: BlockService;
  readonly store: Awaited<ReturnType<HostGroup["stores"]>>;
  readonly pins: Pins;
  /** Roots of the files and mounts, which only this host knows. */
  roots: readonly CID[] = [];
  /** Called after the committed roots have been marked for the first time. */
  marked: () => Promise<void> = async () => {};

  private constructor(store: Host["store"]) {
    this.store = store;
    this.blocks = new BlockService(store.blocks);
    const lock = new SharedLock();
    this.pins = new Pins(this.blocks, store.metadata, lock);
    const roots = async () => this.roots;
    const host = collectingHost({ pins: this.pins, lock, roots, rootsInProgress: roots });
    store.collections?.serve({
      ...host,
      mark: async (...given) => {
        await host.mark(...given);
        const { marked } = this;
        this.marked = async () => {};
        await marked();
      },
    });
  }

  static async open(group: HostGroup, t: TestContext): Promise<Host> {
    const store = await group.stores(t);
    t.after(async () => {
      await store.blocks.close();
      await store.metadata.close();
      await store.close?.();
    });
    return new Host(store);
  }

  async pin({ recursive, direct }: Roots): Promise<void> {
    await this.store.metadata.transaction((writer) => {
      for (const cid of recursive) writer.put(pinKey("recursive", cid), new Uint8Array());
      for (const cid of direct) writer.put(pinKey("direct", cid), new Uint8Array());
    });
  }

  async unpin({ recursive, direct }: Roots): Promise<void> {
    await this.store.metadata.transaction((writer) => {
      for (const cid of recursive) writer.delete(pinKey("recursive", cid));
      for (const cid of direct) writer.delete(pinKey("direct", cid));
    });
  }

  async reads(cid: CID): Promise<boolean> {
    return (await this.blocks.find(cid)) !== undefined;
  }
}

test("a collection across hosts retains the blocks below all roots of all hosts, including roots added meanwhile", async (t) => {
  const group = new HostGroup();
  const one = await Host.open(group, t);
  const other = await Host.open(group, t);
  for (let seed = Number(first); seed < Number(first) + Number(seeds); seed += 1) {
    const chance = new Chance(seed);
    const graph = await Graph.random(chance, 3 + chance.below(20), String(seed));
    const missing = graph.missing();
    const stored = graph.stored(missing);
    await other.blocks.store.put(stored);
    await other.blocks.store.sync();
    const contents = new Contents(stored);
    const before = await Array.fromAsync(one.blocks.store.keys());
    const roots = graph.roots((cid) => contents.isComplete(cid));
    await other.pin(roots);
    one.roots = roots.present;
    const unguard = chance.one([one, other]).pins.guard(() => roots.guarded);
    // Meanwhile the other host stores the missing blocks, and pins something above them.
    const late: Roots = chance.is(2) ? none : { ...none, recursive: [graph.cid()] };
    const all = late === none ? contents : new Contents([...stored, ...graph.all(missing)]);
    one.marked = async () => {
      if (late === none) return;
      await other.blocks.store.put(graph.all(missing));
      await other.blocks.store.sync();
      await other.pin(late);
    };
    await one.store.collections?.collect();
    unguard();
    const after = await Array.fromAsync(one.blocks.store.keys());
    const retained = [...retainedBy(contents, roots), ...all.below(late.recursive)];
    // Other forms of some blocks may stay until the next collection: of blocks that running calls
    // refer to, and of blocks that were pinned late.
    const tolerated = new Set(all.below([...roots.guarded, ...roots.present]).map(bytesOf));
    if (late !== none) for (const cid of retained) tolerated.add(bytesOf(cid));
    for (const host of [one, other]) {
      const { lost, left } = await outcomeOf(retained, all, { before, after }, (cid) => host.reads(cid));
      const useless = left.filter((cid) => !tolerated.has(bytesOf(cid))).map(String);
      assert.deepEqual({ lost, useless, seed }, { lost: [], useless: [], seed });
    }
    await other.unpin(roots);
    await other.unpin(late);
    one.roots = [];
    // A block that was read under another CID was also stored under that CID.
    for (const host of [one, other]) await host.blocks.store.sync();
    await one.store.collections?.collect();
    assert.deepEqual((await Array.fromAsync(one.blocks.store.keys())).map(String), []);
  }
});
