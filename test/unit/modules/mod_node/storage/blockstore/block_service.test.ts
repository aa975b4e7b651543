import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { blockFormat } from "#node/storage/blockstore/make_block.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { as, dagPb, legacy, raw, sample } from "./samples.ts";

test("blocks that the store verifies are not verified again", async () => {
  const { cid } = sample(1, 100);
  const wrong = { get: async () => sample(2, 100).bytes };
  for (const verifies of [false, true]) {
    const blocks = new BlockService({ ...memoryBlocks(), ...wrong, verifies });
    assert.equal((await blocks.find(cid))?.length, 100, "only where the configuration says so");
    blocks.hashOnRead = true;
    if (verifies) assert.equal((await blocks.find(cid))?.length, 100);
    else await assert.rejects(blocks.find(cid), { code: "BLOCK_MISMATCH" });
  }
});

test("a block is found by its multihash under any version and codec, and is stored under that CID from then on", async () => {
  const { cid, bytes } = sample(1, 100);
  const rawForm = as(cid, raw);
  const dagCbor = as(cid, 0x71);
  const unknown = as(cid, 0x300);
  for (const stored of [rawForm, as(cid, dagPb), legacy(cid), dagCbor]) {
    for (const named of [rawForm, as(cid, dagPb), legacy(cid), dagCbor, unknown]) {
      const blocks = new BlockService(memoryBlocks());
      assert.deepEqual([await blocks.has(named), await blocks.size(named)], [false, undefined]);
      await blocks.put([{ cid: stored, bytes }]);
      assert.deepEqual([await blocks.has(named), await blocks.size(named)], [true, 100], `${stored} as ${named}`);
      assert.deepEqual(await blocks.get(named, { offline: true }), bytes);
      assert.equal(await blocks.store.has(named), true);
    }
  }
});

test("codecs of blocks have the names of both generations, and numbers", () => {
  const names = { protobuf: 0x70, "dag-pb": 0x70, "0x70": 0x70, cbor: 0x71, "dag-cbor": 0x71, raw: 0x55, "0x55": 0x55 };
  const others = {
    json: 0x200,
    "dag-json": 0x129,
    "git-raw": 0x78,
    "libp2p-key": 0x72,
    "dag-jose": 0x85,
    "eth-tx": 0x93,
  };
  for (const [name, code] of Object.entries({ ...names, ...others })) {
    assert.equal(blockFormat(name, "sha2-256", -1).codec, code, name);
  }
  for (const name of ["odd", "0x", "0xg", "70", "__proto__"]) {
    assert.throws(() => blockFormat(name, "sha2-256", -1), { message: `unrecognized format: ${name}` });
  }
});
