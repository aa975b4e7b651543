/** What connections are made of goes by the configuration, and nothing is listened on beyond it. */
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { test } from "node:test";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
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
        // Only what this one says that it speaks is left.
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

const address = "/ip4/127.0.0.1/udp/0/quic-v1";
const quic = { "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0", address] };

test("QUIC that is configured and not available is reported with the reason", async () => {
  const notices = async (config: Record<string, unknown>) => {
    await using peer = await startPeer({ config: { ...quic, ...config } });
    assert.equal(peer.swarm.listenAddresses().length, 1);
    assert.deepEqual(peer.logged, []);
    return peer.notices;
  };
  const missing = "@chainsafe/libp2p-quic is not installed";
  assert.deepEqual(await notices({}), [`${address} is not listened on: ${missing}`]);
  assert.deepEqual(await notices({ "Swarm.Transports.Network.QUIC": true }), [
    `QUIC is not listened on: ${missing}`,
    `${address} is not listened on: ${missing}`,
  ]);
  assert.deepEqual(await notices({ "Swarm.Transports.Network.QUIC": false }), [
    `${address} is not listened on: Swarm.Transports.Network.QUIC is false`,
  ]);
});

/** In the place of the native package: says where it listens, and what it is to dial. */
const standIn = `
import { transportSymbol } from ${JSON.stringify(import.meta.resolve("@libp2p/interface"))};
const taken = (addresses) => addresses.filter((address) => String(address).includes("/quic-v1"));
export const quic = () => () => ({
  [transportSymbol]: true,
  [Symbol.toStringTag]: "stand-in",
  listenFilter: taken,
  dialFilter: taken,
  dial: async (address) => { throw new Error("would dial " + address); },
  createListener: () => {
    const listener = new EventTarget();
    let heard = [];
    return Object.assign(listener, {
      listen: async (address) => { heard = [address]; listener.dispatchEvent(new Event("listening")); },
      getAddrs: () => heard,
      updateAnnounceAddrs: () => {},
      close: async () => { listener.dispatchEvent(new Event("close")); },
    });
  },
});
`;

test("QUIC is listened on and dialled where its package is installed", async () => {
  const url = `data:text/javascript,${encodeURIComponent(standIn)}`;
  const hooks = registerHooks({
    resolve: (name, context, next) =>
      name === "@chainsafe/libp2p-quic" ? { url, shortCircuit: true } : next(name, context),
  });
  try {
    await using a = await startPeer({ config: quic });
    assert.deepEqual(a.notices, []);
    assert.ok(a.swarm.listenAddresses().map(String).includes(address));
    await using b = await startPeer();
    await assert.rejects(b.swarm.connect(a.swarm.id, [parseMultiaddr("/ip4/127.0.0.1/udp/9/quic-v1")]), {
      message: `failed to dial ${a.swarm.id}:\n  * [/ip4/127.0.0.1/udp/9/quic-v1] would dial /ip4/127.0.0.1/udp/9/quic-v1/p2p/${a.swarm.id}`,
    });
  } finally {
    hooks.deregister();
  }
});

const linux = { skip: process.platform === "linux" ? false : "asks /proc/net what is listened on" };

test("nothing is listened on but what the configuration names", linux, async () => {
  const before = await listeningSockets();
  const added = async () => (await listeningSockets()).filter((socket) => !before.includes(socket));
  {
    await using fresh = await startPeer();
    const port = String(fresh.swarm.listenAddresses()[0]).split("/").at(-1);
    assert.deepEqual(await added(), [`tcp 127.0.0.1:${port}`]);
  }
  assert.deepEqual(await added(), []);
  const [first, second] = [await freePort(), await freePort()];
  const swarm = [`/ip4/127.0.0.1/tcp/${first}`, `/ip4/127.0.0.1/tcp/${second}/ws`];
  {
    await using both = await startPeer({ config: { "Addresses.Swarm": swarm } });
    await using silent = await startPeer({ config: { "Addresses.Swarm": [] } });
    await connectTo(silent, both);
    assert.deepEqual([...(await added())].sort(), [`tcp 127.0.0.1:${first}`, `tcp 127.0.0.1:${second}`].sort());
  }
  assert.deepEqual(await added(), []);
});
