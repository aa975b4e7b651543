import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { forceNewDials } from "#node/network/swarm/patches/autonat/force_new_dials.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";

test("a peer is dialled back over a new connection", async () => {
  const requests: unknown[] = [];
  const connectionManager = {
    own: "its state",
    async openConnection(...call: unknown[]) {
      requests.push([this.own, ...call]);
    },
  };
  const components = { connectionManager } as unknown as Parameters<typeof forceNewDials>[0];
  const { openConnection } = forceNewDials(components, new PatchNotices()).connectionManager;
  const address = parseMultiaddr("/ip4/192.0.2.1/tcp/1");
  await openConnection(address, { priority: 1 });
  await openConnection([address], { priority: 1 });
  assert.deepEqual(requests, [
    ["its state", address, { priority: 1, force: true }],
    ["its state", [address], { priority: 1 }],
  ]);
});
