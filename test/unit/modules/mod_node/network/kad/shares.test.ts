/** Providing on several hosts of a shared store: each provides its share, and takes over that of a host that is gone. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
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
import { SharedPlace } from "#test/support/shared_hosts.ts";

const cids = await Promise.all(
  Array.from({ length: 300 }, async (_, at) => makeCid(1, raw, await multihash(sha256, Buffer.from(String(at))))),
);
const log = new NodeLog();
const texts = (found: Iterable<CID>): string[] => [...found].map(String).sort();

test("each key is one host's; when one goes, its keys alone go to others", () => {
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

test("who takes part is known to all; who leaves or is gone has no share", async () => {
  const place = new SharedPlace();
  const hosts = await Promise.all([place.join(), place.join(), place.join()]);
  const shares = hosts.map(
    ({ shared, metadata }) => new WorkShares({ log: shared, metadata, name: "test", askEveryMs: 0 }),
  );
  for (const share of shares) {
    share.join();
    await share.division();
  }
  const members = async () => (await shares[0]?.division())?.members;
  assert.deepEqual(await members(), [1, 2, 3]);
  await shares[1]?.leave();
  assert.deepEqual(await members(), [1, 3]);
  place.log.endSession(3);
  assert.deepEqual(await members(), [1]);
});

/** A host of which nothing is left but what it provides. */
async function host(place: SharedPlace) {
  const { shared, metadata } = await place.join();
  const shares = new WorkShares({ log: shared, metadata, name: "providing", askEveryMs: 0 });
  shares.join();
  await shares.division();
  const provided: CID[] = [];
  return { session: shared.session, metadata, shares, provided };
}

test("roots are provided by the host whose they are, whoever has added them, and are taken over", async (t) => {
  const place = new SharedPlace();
  const hosts = [await host(place), await host(place)];
  let isOnline = [true, true];
  const queues = hosts.map(({ metadata, shares, provided }, at) => {
    const queue = new ProvideQueue({
      metadata,
      shares,
      log,
      workers: () => 8,
      ready: () => isOnline[at] === true,
      provide: async (cid) => void provided.push(cid),
      lookEveryMs: 5,
    });
    t.after(() => queue.stop());
    return queue;
  });
  for (const queue of queues) await queue.start();
  const all = () => texts(hosts.flatMap(({ provided }) => provided));
  queues[0]?.add(cids.slice(0, 60));
  await eventually("all are provided", async () => all().length >= 60);
  assert.deepEqual(all(), texts(cids.slice(0, 60)));
  for (const { provided, shares } of hosts) {
    const division = await shares.division();
    assert.ok(provided.length > 10);
    for (const {
      multihash: { bytes },
    } of provided)
      assert.ok(division.isMine(bytes));
  }
  // The second goes before it has provided anything of the rest.
  isOnline = [true, false];
  queues[1]?.add(cids.slice(60, 120));
  await queues[1]?.stop();
  place.log.endSession(hosts[1]?.session as number);
  await eventually("the rest is taken over", async () => all().length >= 120);
  assert.deepEqual(all(), texts(cids.slice(0, 120)));
});

test("each host provides its share again; what one has provided that is gone another provides soon", async (t) => {
  const place = new SharedPlace();
  const hosts = [await host(place), await host(place)];
  const reproviders = hosts.map(({ shares, provided }) => reprovider(t, shares, provided));
  for (const each of reproviders) await each.start();
  for (const each of reproviders) await each.run();
  const [one, other] = hosts.map(({ provided }) => [...provided]) as [CID[], CID[]];
  assert.deepEqual(texts([...one, ...other]), texts(cids));
  assert.ok(one.length > 80 && other.length > 80);
  assert.equal(reproviders[0]?.last.provided, one.length);
  place.log.endSession(hosts[1]?.session as number);
  reproviders[1]?.stop();
  await eventually("its share is provided", async () => (hosts[0]?.provided.length ?? 0) >= cids.length);
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
    lookEveryMs: 5,
  });
  t.after(() => made.stop());
  return made;
}
