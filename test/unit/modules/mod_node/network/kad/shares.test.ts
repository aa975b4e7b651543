/**
 * Provides blocks on several hosts of a shared store: each provides its part, and takes over the
 * part of a host that left.
 */
import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import type { CID } from "multiformats/cid";
import { raw } from "#node/formats/cid/codecs.ts";
import { multihash, sha256 } from "#node/formats/cid/hashes.ts";
import { makeCid } from "#node/formats/cid/make.ts";
import { ProvideQueue } from "#node/network/kad/provide_queue.ts";
import { Reprovider, type ReproviderDeps } from "#node/network/kad/reprovider.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { Division, WorkShares } from "#node/storage/shared/work_shares.ts";
import { NodeLog } from "#node/util/log.ts";
import { eventually } from "#test/support/eventually.ts";
import { MemorySharedStore } from "#test/support/shared_hosts.ts";

let cids: readonly CID[] = [];
before(async () => {
  cids = await Promise.all(
    Array.from({ length: 300 }, async (_, at) => makeCid(1, raw, await multihash(sha256, Buffer.from(String(at))))),
  );
});
const log = new NodeLog();
const texts = (found: Iterable<CID>): string[] => [...found].map(String).sort();

test("each key belongs to one host, and only the keys of a host that leaves move to others", () => {
  const members = [3, 7, 8];
  const owner = (key: Uint8Array, among: readonly number[]): number => {
    const owners = among.filter((own) => new Division(own, among).isMine(key));
    assert.equal(owners.length, 1);
    return owners[0] as number;
  };
  const before = cids.map(({ multihash: { bytes } }) => owner(bytes, members));
  const after = cids.map(({ multihash: { bytes } }) => owner(bytes, [3, 8]));
  for (const member of members) {
    const part = before.filter((own) => own === member).length / cids.length;
    assert.ok(part > 0.2 && part < 0.5, `${member} has ${part}`);
  }
  for (const [at, own] of before.entries()) if (own !== 7) assert.equal(after[at], own);
});

test("all hosts know the participants, and hosts that left or died have no part", async () => {
  const sharedStore = new MemorySharedStore();
  const hosts = await Promise.all([sharedStore.join(), sharedStore.join(), sharedStore.join()]);
  const shares = hosts.map(
    ({ shared, metadata }) => new WorkShares({ log: shared, metadata, name: "test", queryEveryMs: 0 }),
  );
  for (const share of shares) {
    share.join();
    await share.division();
  }
  const members = async () => (await shares[0]?.division())?.members;
  assert.deepEqual(await members(), [1, 2, 3]);
  await shares[1]?.leave();
  assert.deepEqual(await members(), [1, 3]);
  sharedStore.log.endSession(3);
  assert.deepEqual(await members(), [1]);
});

/** A host of which only the providing part exists. */
async function host(sharedStore: MemorySharedStore) {
  const { shared, metadata } = await sharedStore.join();
  const shares = new WorkShares({ log: shared, metadata, name: "providing", queryEveryMs: 0 });
  shares.join();
  await shares.division();
  const provided: CID[] = [];
  return { session: shared.session, metadata, shares, provided };
}

test("roots are provided by the host that they belong to, whoever added them, and are taken over", async (t) => {
  const sharedStore = new MemorySharedStore();
  const hosts = [await host(sharedStore), await host(sharedStore)];
  let isOnline = [true, true];
  const queues = hosts.map(({ metadata, shares, provided }, at) => {
    const queue = new ProvideQueue({
      metadata,
      shares,
      log,
      workers: () => 8,
      ready: () => isOnline[at] === true,
      provide: async (cid) => void provided.push(cid),
      checkEveryMs: 5,
    });
    t.after(() => queue.stop());
    return queue;
  });
  for (const queue of queues) await queue.start();
  const all = () => texts(hosts.flatMap(({ provided }) => provided));
  queues[0]?.add(cids.slice(0, 60));
  await eventually("all roots are provided", async () => all().length >= 60);
  assert.deepEqual(all(), texts(cids.slice(0, 60)));
  for (const { provided, shares } of hosts) {
    const division = await shares.division();
    assert.ok(provided.length > 10);
    for (const {
      multihash: { bytes },
    } of provided)
      assert.ok(division.isMine(bytes));
  }
  // The second host leaves before it has provided any of the rest.
  isOnline = [true, false];
  queues[1]?.add(cids.slice(60, 120));
  await queues[1]?.stop();
  sharedStore.log.endSession(hosts[1]?.session as number);
  await eventually("the rest is taken over", async () => all().length >= 120);
  assert.deepEqual(all(), texts(cids.slice(0, 120)));
});

test("each host reprovides its part, and another host soon takes over the part of a dead one", async (t) => {
  const sharedStore = new MemorySharedStore();
  const hosts = [await host(sharedStore), await host(sharedStore)];
  const reproviders = hosts.map(({ shares, provided }) => reprovider(t, shares, provided));
  for (const each of reproviders) await each.start();
  for (const each of reproviders) await each.run();
  const [one, other] = hosts.map(({ provided }) => [...provided]) as [CID[], CID[]];
  assert.deepEqual(texts([...one, ...other]), texts(cids));
  assert.ok(one.length > 80 && other.length > 80);
  assert.equal(reproviders[0]?.last.provided, one.length);
  sharedStore.log.endSession(hosts[1]?.session as number);
  reproviders[1]?.stop();
  await eventually(
    "the part of the first host is provided",
    async () => (hosts[0]?.provided.length ?? 0) >= cids.length,
  );
  assert.deepEqual(texts(hosts[0]?.provided.slice(one.length) ?? []), texts(other));
});

function reprovider(t: TestContext, shares: WorkShares, provided: CID[]): Reprovider {
  const made = new Reprovider({
    shares,
    log,
    metadata: memoryMetadata(),
    repo: { config: { value: () => "" } } as unknown as ReproviderDeps["repo"],
    blocks: { store: { keys: () => cids.values() } } as unknown as ReproviderDeps["blocks"],
    pins: {} as ReproviderDeps["pins"],
    workers: () => 4,
    ready: () => true,
    provide: async (cid) => void provided.push(cid),
    checkEveryMs: 5,
  });
  t.after(() => made.stop());
  return made;
}
