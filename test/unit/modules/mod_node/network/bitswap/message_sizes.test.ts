import assert from "node:assert/strict";
import { test } from "node:test";
import type { BitswapPeer } from "#node/network/bitswap/bitswap_peer.ts";
import { DecisionEngine } from "#node/network/bitswap/decision_engine.ts";
import { Ledger } from "#node/network/bitswap/ledger.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { NodeLog } from "#node/util/log.ts";
import { eventually } from "#test/support/eventually.ts";
import { silent, someBlocks, wantOf } from "./support.ts";

const SIZE = 64 * 1024;

test("a peer that receives messages quickly gets larger ones, and normal ones again when it slows down", async (t) => {
  let now = 0;
  let milliseconds = 1;
  t.mock.method(performance, "now", () => now);
  const lengths: number[] = [];
  const queue = {
    async sendBlocks(blocks: readonly Block[]) {
      lengths.push(blocks.length * SIZE);
      // The engine measures the time after it has handed over the message.
      await undefined;
      now += milliseconds;
      return false;
    },
  };
  const peer = { name: "peer", queue, ledger: new Ledger() } as unknown as BitswapPeer;
  const blocks = new BlockService(memoryBlocks());
  const engine = new DecisionEngine({ blocks, log: new NodeLog(), buffers: new BufferPool() });
  engine.addPeer(peer);
  /**
   * Sends more than any message can contain, each message accepted after that many milliseconds.
   * @returns the length of the first message
   */
  const firstOfMany = async (taken: number) => {
    milliseconds = taken;
    lengths.length = 0;
    const wanted = someBlocks(20, SIZE);
    await blocks.put(wanted);
    engine.receiveWants(peer, { ...silent, droppedEntries: 0, entries: wanted.map((block) => wantOf(block)) });
    await eventually("all was sent", () => engine.wantlist(peer).length === 0);
    return lengths[0];
  };
  assert.equal(await firstOfMany(1), 512 * 1024);
  assert.equal(await firstOfMany(1), 1024 * 1024);
  assert.equal(await firstOfMany(1000), 1024 * 1024);
  assert.equal(await firstOfMany(1), 512 * 1024);
});
