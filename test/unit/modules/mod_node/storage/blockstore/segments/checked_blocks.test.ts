import assert from "node:assert/strict";
import { test } from "node:test";
import { CheckedBlocks } from "#node/storage/blockstore/segments/checked_blocks.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

// Large blocks have another kind of checksum.
for (const length of [5000, 256 * 1024]) {
  const [block, other] = samples(2, length) as [Block, Block];
  const location = { segment: 1, offset: 100, length, headLength: 40 };
  const named = (rest: string) => `${length} bytes: ${rest}`;

  test(
    named(
      "a block is refused when its bytes are damaged, however often it was right, and accepted again when they are repaired",
    ),
    async () => {
      const checked = new CheckedBlocks();
      const damaged = block.bytes.slice();
      damaged[4000] = (damaged[4000] as number) ^ 1;
      assert.equal(await checked.check(block.cid, location, damaged), false);
      for (let times = 0; times < 4; times += 1) {
        assert.equal(await checked.check(block.cid, location, block.bytes), true);
        assert.equal(await checked.check(block.cid, location, damaged), false);
      }
    },
  );

  test(named("a block that was read twice is verified by its checksum"), async () => {
    const checked = new CheckedBlocks();
    const isKnown = (segment = 1) => checked.fits(block.cid, { ...location, segment }, block.bytes);
    for (let times = 0; times < 2; times += 1) {
      assert.equal(isKnown(), false);
      assert.equal(await checked.check(block.cid, location, block.bytes), true);
    }
    assert.equal(isKnown(), true);
    assert.equal(isKnown(2), false, "the same elsewhere");
  });

  test(named("a block at the location of another block is verified by its hash"), async () => {
    const checked = new CheckedBlocks();
    for (let times = 0; times < 3; times += 1) await checked.check(block.cid, location, block.bytes);
    assert.equal(await checked.check(block.cid, location, other.bytes), false);
    assert.equal(await checked.check(other.cid, location, block.bytes), false);
    assert.equal(await checked.check(other.cid, location, other.bytes), true);
  });
}

test("nearly all of 10,000 blocks that are read in turn are verified by their checksums", () => {
  const checked = new CheckedBlocks();
  const [{ cid, bytes }] = samples(1, 4096) as [Block];
  const locations = Array.from({ length: 10_000 }, (_, at) => {
    return { segment: 1, offset: 60 + at * 4134, length: bytes.length, headLength: 38 };
  });
  for (let times = 0; times < 2; times += 1) for (const location of locations) checked.check(cid, location, bytes);
  const known = locations.filter((location) => checked.isSummed(location)).length;
  assert.ok(known > 9_900, `${known} are known`);
});
