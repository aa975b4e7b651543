import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PublishedRecords } from "#node/network/ipns/published_records.ts";
import { Republisher } from "#node/network/ipns/republisher.ts";
import { checkRecord } from "#node/network/ipns_record/check.ts";
import { decodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, parseTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { NodeLog } from "#node/util/log.ts";

const minute = 60_000;
const hour = 60 * minute;
const never = new AbortController().signal;

/** Creates three keys: one with a record, one without, and one whose record has expired. */
async function start(t: TestContext, settings: Readonly<Record<string, string>> = {}, anyPeriod = false) {
  const config = { value: (path: string) => settings[path] ?? "" } as unknown as ConstructorParameters<
    typeof Republisher
  >[0]["config"];
  const keys = await Promise.all([1, 2, 3].map(() => generateKey({ type: "ed25519" })));
  const [fresh, , old] = keys as [Key, Key, Key];
  const published = new PublishedRecords(memoryMetadata());
  const put = (key: Key, lifetime: number) => {
    const claim = {
      value: Buffer.from("/ipfs/bafkqaaa"),
      validity: formatTimestamp(timestampAfter(lifetime)),
      sequence: 5n,
    };
    return published.update(key.id, () => signRecord(key, { ...claim, ttl: 7n }));
  };
  await put(fresh, 100 * hour);
  await put(old, -hour);
  const reported: (readonly [Key, Uint8Array])[] = [];
  const failing = new Set<Key>();
  const republisher = new Republisher({
    config,
    log: new NodeLog(),
    published,
    anyPeriod,
    async *keys() {
      yield* keys;
    },
    async publish(key, bytes) {
      if (failing.has(key)) throw new Error("nobody");
      reported.push([key, bytes]);
    },
  });
  t.after(() => republisher.stop());
  return { republisher, published, reported, failing, fresh, old };
}

test("each published name is published again, with the same sequence and a later end", async (t) => {
  const { republisher, published, reported, fresh, old } = await start(t, { "Ipns.RecordLifetime": "5h" });
  const before = (await published.get(fresh.id))?.record.validity;
  assert.equal(await republisher.round(never), true);
  assert.deepEqual(
    reported.map(([key]) => key),
    [fresh, old],
  );
  for (const [key, bytes] of reported) {
    const { sequence, ttl } = await checkRecord(key.id, bytes);
    assert.deepEqual([sequence, ttl], [5n, 7n]);
    assert.deepEqual(Buffer.from((await published.get(key.id))?.bytes ?? []), bytes);
  }
  const ends = reported.map(([, bytes]) => decodeRecord(bytes).validity);
  assert.equal(ends[0], before);
  const left = Number((parseTimestamp(ends[1] ?? "") ?? 0n) - timestampAfter(0)) / 1e6;
  assert.ok(left > 5 * hour - minute && left <= 5 * hour);
});

test("a name that cannot be published does not keep others from being published", async (t) => {
  const { republisher, reported, failing, fresh, old } = await start(t);
  failing.add(fresh);
  assert.equal(await republisher.round(never), false);
  assert.deepEqual(
    reported.map(([key]) => key),
    [old],
  );
});

test("the first round is a minute after the start, the next after the period, or soon after a failure", async (t) => {
  const { republisher, reported, failing, old } = await start(t, { "Ipns.RepublishPeriod": "1h" });
  const settled = async () => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const after = async (milliseconds: number) => {
    t.mock.timers.tick(milliseconds);
    await settled();
    return reported.length;
  };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  republisher.start();
  assert.equal(await after(minute - 1), 0);
  assert.equal(await after(1), 2);
  failing.add(old);
  assert.equal(await after(hour), 3);
  failing.clear();
  assert.equal(await after(5 * minute), 5);
  assert.equal(await after(hour - 1), 5);
  await republisher.stop();
  assert.equal(await after(hour), 5);
});

test("any period is accepted on request", async (t) => {
  const { republisher, reported } = await start(t, { "Ipns.RepublishPeriod": "40s" }, true);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  republisher.start();
  t.mock.timers.tick(40_000);
  t.mock.timers.reset();
  while (reported.length < 2) await new Promise<void>((resolve) => setImmediate(resolve));
});

test("invalid periods are refused", async (t) => {
  const refusals = {
    "30s": "config setting IPNS.RepublishPeriod is not between 1min and 1day: 30s",
    "25h": "config setting IPNS.RepublishPeriod is not between 1min and 1day: 25h0m0s",
    x: 'failure to parse config setting IPNS.RepublishPeriod: time: invalid duration "x"',
  };
  for (const [period, message] of Object.entries(refusals)) {
    await assert.rejects(start(t, { "Ipns.RepublishPeriod": period }), { message });
  }
  await assert.rejects(start(t, { "Ipns.RecordLifetime": "3h" }), {
    message:
      "config setting IPNS.RecordLifetime (3h0m0s) must be >= IPNS.RepublishPeriod (4h0m0s), " +
      "otherwise records expire before they are republished",
  });
  await assert.rejects(start(t, { "Ipns.RecordLifetime": "1d" }), {
    message: 'failure to parse config setting IPNS.RecordLifetime: time: unknown unit "d" in duration "1d"',
  });
});

test("a changed lifetime applies from the next round, and an invalid one leaves the previous in effect", async (t) => {
  const settings: Record<string, string> = { "Ipns.RecordLifetime": "200h" };
  const { republisher, published, fresh } = await start(t, settings);
  const hours = async () => {
    await republisher.round(never);
    const end = parseTimestamp((await published.get(fresh.id))?.record.validity as string) as bigint;
    return Number((end - timestampAfter(0)) / BigInt(hour) / 1_000_000n);
  };
  assert.equal(Math.abs((await hours()) - 200) <= 1, true);
  settings["Ipns.RecordLifetime"] = "300h";
  republisher.renew();
  assert.equal(Math.abs((await hours()) - 300) <= 1, true);
  settings["Ipns.RecordLifetime"] = "for ever";
  assert.throws(() => republisher.renew(), /failure to parse config setting IPNS.RecordLifetime/);
  assert.equal(Math.abs((await hours()) - 300) <= 1, true);
});
