import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { streamPair } from "@libp2p/utils";
import { encodeMessage } from "#node/network/bitswap/encode_message.ts";
import { Inbound } from "#node/network/bitswap/inbound.ts";
import { cidPrefix } from "#node/network/bitswap/keys.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { silent, someBlocks, until } from "./support.ts";

const size = 3_000_000;

/** A peer has sent as much as may be in progress, so the next message waits in its stream. */
async function paused(t: TestContext) {
  const [far, near] = await streamPair();
  t.after(() => far.abort(new Error("the test is over")));
  const { promise: dealtWith, resolve: goOn } = Promise.withResolvers<void>();
  const brought: number[] = [];
  const inbound = new Inbound(
    {
      message({ blocks }) {
        brought.push(...blocks.map(({ data }) => data.length));
        return dealtWith;
      },
      malformed: (reason) => assert.fail(String(reason)),
    },
    new BufferPool(),
  );
  inbound.add(near);
  const say = (length: number) => {
    const [{ cid, bytes }] = someBlocks(1, length) as [ReturnType<typeof someBlocks>[number]];
    const blocks = [{ prefix: cidPrefix(cid), data: bytes }];
    for (const piece of encodeMessage({ ...silent, blocks })) far.send(piece);
  };
  for (let number = 0; number < 3; number += 1) say(size);
  await until(() => near.readStatus === "paused", "reading is paused");
  assert.equal(brought.length, 3);
  say(1000);
  return { far, near, inbound, brought, goOn };
}

const all = [size, size, size, 1000];

test("buffered data of a paused stream is read even if its peer closes it meanwhile", async (t) => {
  const { far, near, brought, goOn } = await paused(t);
  const closed = once(near, "close");
  await Promise.all([closed, far.close()]);
  goOn();
  await until(() => brought.length === 4, "the last message has arrived");
  assert.deepEqual(brought, all);
});

test("buffered data of a paused stream is read even if its peer resets it meanwhile", async (t) => {
  const { far, near, brought, goOn } = await paused(t);
  await until(() => far.writeBufferLength === 0, "everything is sent");
  await until(() => near.readBufferLength > 1000, "the data has arrived");
  const closed = once(near, "close");
  far.abort(new Error("enough"));
  await closed;
  goOn();
  await until(() => brought.length === 4, "the last message has arrived");
  assert.deepEqual(brought, all);
});

test("nothing is read after closing", async (t) => {
  const { near, inbound, brought, goOn } = await paused(t);
  inbound.close(new Error("the peer is gone"));
  assert.equal(near.status, "aborted");
  goOn();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(brought, all.slice(0, 3));
});
