/**
 * Tests that transports, encryption and multiplexers follow the configuration, and that only
 * configured addresses are listened on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "#test/support/free_port.ts";
import { listeningSockets } from "#test/support/sockets.ts";
import { connectTo, startPeer } from "./support.ts";

const security = { "/noise": "Noise", "/tls/1.0.0": "TLS" } as const;
const multiplexers = { "/yamux/1.0.0": "Yamux", "/mplex/6.7.0": "Mplex" } as const;
const transports = ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws"];

for (const transport of transports) {
  for (const [encryption, secured] of Object.entries(security)) {
    for (const [multiplexer, shared] of Object.entries(multiplexers)) {
      test(`${transport} with ${secured} and ${shared}`, async () => {
        await using a = await startPeer({ config: { "Addresses.Swarm": [transport] } });
        // Disables all other protocols on this node.
        const others = [...Object.values(security), ...Object.values(multiplexers)].filter(
          (name) => name !== secured && name !== shared,
        );
        const off = others.map((name) => [
          `Swarm.Transports.${Object.values<string>(security).includes(name) ? "Security" : "Multiplexers"}.${name}`,
          false,
        ]);
        await using b = await startPeer({ config: Object.fromEntries(off) });
        const connection = await connectTo(b, a);
        assert.deepEqual([connection.encryption, connection.multiplexer], [encryption, multiplexer]);
        assert.equal(connection.remoteAddr.toString().includes("/ws/"), transport.endsWith("/ws"));
      });
    }
  }
}

const linux = { skip: process.platform === "linux" ? false : "asks /proc/net what is listened on" };

test("only configured addresses are listened on", linux, async () => {
  const before = await listeningSockets();
  const added = async () => (await listeningSockets()).filter((socket) => !before.includes(socket));
  {
    await using fresh = await startPeer();
    const port = String(fresh.swarm.listenAddresses()[0]).split("/").at(-1);
    assert.deepEqual(await added(), [`tcp 127.0.0.1:${port}`]);
  }
  assert.deepEqual(await added(), []);
  const first = await freePort();
  const second = await freePort();
  const swarm = [`/ip4/127.0.0.1/tcp/${first}`, `/ip4/127.0.0.1/tcp/${second}/ws`];
  {
    await using both = await startPeer({ config: { "Addresses.Swarm": swarm } });
    await using silent = await startPeer({ config: { "Addresses.Swarm": [] } });
    await connectTo(silent, both);
    assert.deepEqual([...(await added())].sort(), [`tcp 127.0.0.1:${first}`, `tcp 127.0.0.1:${second}`].sort());
  }
  assert.deepEqual(await added(), []);
});
