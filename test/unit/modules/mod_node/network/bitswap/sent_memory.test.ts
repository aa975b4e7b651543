import assert from "node:assert/strict";
import { test } from "node:test";
import { noise } from "@libp2p/noise";
import { tls } from "@libp2p/tls";
import type { CID } from "multiformats/cid";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import type { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { connect, host, peer, someBlocks } from "./support.ts";

const COUNT = 40;
const SIZE = 250_000;

for (const { name, encrypter, isUsedAgain } of [
  { name: "serves again once it is encrypted", encrypter: noise, isUsedAgain: true },
  { name: "is left alone where it may wait to be encrypted", encrypter: tls, isUsedAgain: false },
]) {
  test(`the memory of a block that was sent ${name}`, async (t) => {
    const all = someBlocks(COUNT, SIZE);
    const memories = new Set<ArrayBufferLike>();
    const store = memoryBlocks();
    const blocks = new BlockService(store);
    await blocks.put(all);
    const { get } = store;
    store.get = async (cid: CID, buffers?: BufferPool) => {
      const bytes = await get.call(store, cid);
      const into = bytes && buffers?.take(bytes.length);
      if (bytes === undefined || into === undefined) return bytes;
      into.set(bytes);
      memories.add(into.buffer);
      return into;
    };
    const from = await peer(t, { blocks }, host(t, [encrypter()]));
    const to = await peer(t, {}, host(t, [encrypter()]));
    await connect(to, from);
    const got = await Promise.all(all.map(({ cid }) => to.bitswap.fetch(cid, undefined)));
    for (const [at, { bytes }] of all.entries()) assert.ok(Buffer.from(bytes).equals(got[at] as Uint8Array));
    assert.equal(memories.size < COUNT, isUsedAgain, `${memories.size} buffers for ${COUNT} blocks`);
  });
}
