import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { sample } from "./samples.ts";

test("blocks that the store checks are not checked once more", async () => {
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
