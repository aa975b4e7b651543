import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { someBlocks } from "../bitswap/support.ts";
import { meet, soon, startNode, untilProvided } from "../kad/support.ts";

test("a block is fetched from the gateway that a provider announces in the DHT", async (t) => {
  const [block] = someBlocks(1, 5000) as [ReturnType<typeof someBlocks>[0]];
  const gateway = createServer(({ url = "" }, response) =>
    response.end(url.includes(`${block.cid}`) ? block.bytes : ""),
  );
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
  t.after(() => {
    gateway.closeAllConnections();
    gateway.close();
  });
  const address = `/ip4/127.0.0.1/tcp/${(gateway.address() as AddressInfo).port}/http`;
  await using provider = await startNode({ config: { "Addresses.AppendAnnounce": [address] } });
  await using asker = await startNode();
  await meet(asker, provider);
  // The provider itself has no block that bitswap could send.
  for await (const _ of provider.routing.provide(block.cid, soon()));
  await untilProvided(asker, block.cid, provider);
  const bytes = await asker.node.blocks.get(block.cid, { signal: soon() });
  assert.ok(Buffer.compare(bytes, block.bytes) === 0);
  assert.equal(asker.network.httpSources.counts.block, 1);
});
