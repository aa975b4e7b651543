/**
 * Cuts the last section of a block store's log wherever a write might have ended. An incomplete
 * section must count as not written.
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

/** Returns how many bytes of a section to keep: one number for each attempt. */
export type Cuts = (tail: Uint8Array) => readonly number[];

export const everyByte: Cuts = (tail) => Array.from({ length: tail.length + 1 }, (_, cut) => cut);

/**
 * Cuts around each boundary of the section: of its length, of the parts of its CID, of its data;
 * and some in between.
 */
export const borders: Cuts = (tail) => {
  const section = readSection(tail, 0);
  assert.ok(section);
  const length = tail.findIndex((byte) => byte < 128) + 1;
  // The parts after the length: version, codec, hash function, length of the digest.
  const inHead = [0, length, length + 1, length + 2, length + 3, length + 4, section.headLength];
  const around = [...inHead, tail.length].flatMap((offset) => [offset - 1, offset, offset + 1]);
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

/** Opens a store, passes it to `look`, and closes it. Resolves to the notices. */
export async function reopened(at: string, look: Work): Promise<string[]> {
  const notices: string[] = [];
  const store = await openSegmentStore(at, { onNotice: (text) => notices.push(text) });
  await look(store);
  await store.close();
  return notices;
}

/** Makes a store whose index ends before the last section of the log. Also returns that section. */
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
 * Checks that a block with a torn section does not exist, and that writing continues.
 * @returns the number of cuts
 */
export async function tornBlocks(cuts: Cuts): Promise<number> {
  const stored = samples(3);
  const { at, tail } = await torn(
    (store) => store.put(stored),
    (store) => store.put([sample(50)]),
  );
  assert.ok(tail.length > 100);
  const all = cuts(tail);
  for (const cut of all) {
    const copy = await copyOf(at);
    await appendFile(segmentFile(copy), tail.subarray(0, cut));
    const expected = cut === tail.length ? [...stored, sample(50)] : stored;
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

/**
 * Checks that a deletion with a torn record did not happen.
 * @returns the number of cuts
 */
export async function tornDeletions(cuts: Cuts): Promise<number> {
  const stored = samples(3);
  const { at, tail } = await torn(
    (store) => store.put(stored),
    (store) => store.delete([sample(1).cid]),
  );
  const all = cuts(tail).filter((cut) => cut > 0);
  for (const cut of all) {
    const copy = await copyOf(at);
    await appendFile(segmentFile(copy), tail.subarray(0, cut));
    const expected = cut === tail.length ? stored.filter((_, seed) => seed !== 1) : stored;
    await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf(expected), `cut at ${cut}`);
      assert.equal((await store.stat()).blocks, expected.length);
    });
  }
  return all.length;
}
