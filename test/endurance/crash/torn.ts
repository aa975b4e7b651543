/**
 * The last section of a block store's log, cut where a write might have ended: what was not whole
 * was never there.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { readSection } from "#node/storage/blockstore/segments/format.ts";
import {
  openSegmentStore,
  type SegmentStore,
  type SegmentStoreOptions,
} from "#node/storage/blockstore/segments/store.ts";
import { contents, contentsOf, sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, folder } from "#test/unit/modules/mod_node/storage/blockstore/segments/workshop.ts";

type Work = (store: SegmentStore) => Promise<unknown>;

/** The bytes of a section that are kept, so many of them at a time. */
export type Cuts = (tail: Uint8Array) => readonly number[];

export const everyByte: Cuts = (tail) => Array.from({ length: tail.length + 1 }, (_, cut) => cut);

/**
 * Around each border of the section: of its length, of the parts of its CID, of its data; and some
 * in between.
 */
export const borders: Cuts = (tail) => {
  const section = readSection(tail, 0);
  assert.ok(section);
  const length = tail.findIndex((byte) => byte < 128) + 1;
  // Behind the length: version, codec, hash function, length of the digest.
  const inHead = [0, length, length + 1, length + 2, length + 3, length + 4, section.headLength];
  const around = [...inHead, tail.length].flatMap((place) => [place - 1, place, place + 1]);
  const between = Array.from({ length: 6 }, () => randomInt(tail.length));
  return [...new Set([...around, ...between])].filter((cut) => cut >= 0 && cut <= tail.length);
};

export const segmentFile = (at: string, segment = 1): string => join(at, `0000000${segment}.car`);

export async function made(fill: Work, options?: SegmentStoreOptions): Promise<string> {
  const at = folder();
  const store = await openSegmentStore(at, options);
  await fill(store);
  await store.close();
  return at;
}

/** Opens, hands the store to `look`, closes; gives the notices. */
export async function reopened(at: string, look: Work): Promise<string[]> {
  const notices: string[] = [];
  const store = await openSegmentStore(at, { onNotice: (text) => notices.push(text) });
  await look(store);
  await store.close();
  return notices;
}

/** A store whose index ends before the last section of the log, and that section. */
export async function torn(before: Work, last: Work): Promise<{ at: string; tail: Buffer }> {
  const at = await made(before);
  const whole = await made(async (store) => {
    await before(store);
    await last(store);
  });
  const { size } = await stat(segmentFile(at));
  return { at, tail: (await readFile(segmentFile(whole))).subarray(size) };
}

/**
 * A block whose section is torn was never there, and writing goes on. @returns how many cuts were
 * tried
 */
export async function tornBlocks(cuts: Cuts): Promise<number> {
  const kept = samples(3);
  const { at, tail } = await torn(
    (store) => store.put(kept),
    (store) => store.put([sample(50)]),
  );
  assert.ok(tail.length > 100);
  const all = cuts(tail);
  for (const cut of all) {
    const copy = await copyOf(at);
    await appendFile(segmentFile(copy), tail.subarray(0, cut));
    const expected = cut === tail.length ? [...kept, sample(50)] : kept;
    const notices = await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf(expected), `cut at ${cut}`);
      await store.put([sample(60)]);
    });
    assert.equal(notices.length, cut === 0 || cut === tail.length ? 0 : 1, `cut at ${cut}: ${notices.join("; ")}`);
    const again = await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf([...expected, sample(60)]), `cut at ${cut}`);
    });
    assert.deepEqual(again, []);
  }
  return all.length;
}

/** A deletion whose record is torn did not happen. @returns how many cuts were tried */
export async function tornDeletions(cuts: Cuts): Promise<number> {
  const kept = samples(3);
  const { at, tail } = await torn(
    (store) => store.put(kept),
    (store) => store.delete([sample(1).cid]),
  );
  const all = cuts(tail).filter((cut) => cut > 0);
  for (const cut of all) {
    const copy = await copyOf(at);
    await appendFile(segmentFile(copy), tail.subarray(0, cut));
    const expected = cut === tail.length ? kept.filter((_, seed) => seed !== 1) : kept;
    await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf(expected), `cut at ${cut}`);
      assert.equal((await store.stat()).blocks, expected.length);
    });
  }
  return all.length;
}
