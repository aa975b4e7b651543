import assert from "node:assert/strict";
import { test } from "node:test";
import { listeningSockets } from "#test/support/sockets.ts";
import { startRpc } from "./commands/support.ts";

const skip = process.platform === "linux" ? false : "asks /proc/net what is listened on";

test("an unconfigured node stays on loopback, and looks for no peers", { skip }, async () => {
  const before = await listeningSockets();
  await using host = await startRpc({ node_offline: false });
  const { Addresses } = await host.value<{ Addresses: string[] }>("id");
  const [, port] = /^\/ip4\/127\.0\.0\.1\/tcp\/(\d+)\/p2p\/\w+$/.exec(Addresses.join()) ?? [];
  const opened = (await listeningSockets()).filter((socket) => !before.includes(socket));
  assert.deepEqual(new Set(opened), new Set([`tcp 127.0.0.1:${host.http}`, `tcp 127.0.0.1:${port}`]));
  const document = await host.value<{
    Addresses: { Swarm: string[] };
    Bootstrap: unknown;
    Discovery: unknown;
    Swarm: { DisableNatPortMap: boolean };
  }>("config/show");
  assert.match(document.Addresses.Swarm.join(), /^\/ip4\/127\.0\.0\.1\/tcp\/\d+$/);
  assert.deepEqual(document.Bootstrap, []);
  assert.deepEqual(document.Discovery, { MDNS: { Enabled: false, Interval: 10 } });
  assert.equal(document.Swarm.DisableNatPortMap, true);
  assert.deepEqual((await host.value<{ Peers: unknown }>("swarm/peers")).Peers, null);
});
