/** Closing a node ends all its network operations, even if the peers involved never respond. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { generateKeyPair } from "@libp2p/crypto/keys";
import { identify } from "@libp2p/identify";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { tcp } from "@libp2p/tcp";
import { tls } from "@libp2p/tls";
import { yamux } from "@libp2p/yamux";
import { multiaddr } from "@multiformats/multiaddr";
import { createLibp2p, type Libp2p } from "libp2p";
import type { PeerId } from "#node/formats/peer_id.ts";
import { memoryStores, parseCid } from "#node/index.ts";
import type { Network } from "#node/network/network.ts";
import { pingProtocol } from "#node/network/swarm/ping.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { until } from "./bitswap/support.ts";

const nowhere = parseCid("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG");
const routingProtocol = "/ipfs/lan/kad/1.0.0";
const tunnel = "/x/tunnel";
const never = new AbortController().signal;

/** Accepts every stream and connection, and never sends a useful response. */
class Silent {
  readonly libp2p: Libp2p;
  readonly server = createServer({ allowHalfOpen: true }, (socket) => {
    this.requests.add("connection");
    socket.on("error", () => undefined);
    socket.on("end", () => socket.destroy()).resume();
  });
  /** Protocols that were requested. */
  readonly requests = new Set<string>();
  /** Peers that do not echo pings enter no routing table. */
  echoes = true;

  private constructor(libp2p: Libp2p) {
    this.libp2p = libp2p;
  }

  static async start(): Promise<Silent> {
    const silent = new Silent(
      await createLibp2p({
        addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
        transports: [tcp()],
        connectionEncrypters: [tls()],
        streamMuxers: [yamux()],
        services: { identify: identify() },
        connectionManager: { inboundConnectionThreshold: 1000 },
      }),
    );
    for (const protocol of [routingProtocol, tunnel, "/ipfs/bitswap/1.2.0"]) {
      await silent.libp2p.handle(protocol, () => void silent.requests.add(protocol));
    }
    await silent.libp2p.handle(pingProtocol, (stream) => {
      stream.addEventListener("message", ({ data }) => {
        if (silent.echoes) stream.send(data);
        silent.requests.add(pingProtocol);
      });
    });
    silent.server.listen(0, "127.0.0.1");
    await once(silent.server, "listening");
    return silent;
  }

  /** Address of a server that accepts connections and never sends anything. */
  get mute() {
    return multiaddr(`/ip4/127.0.0.1/tcp/${(this.server.address() as AddressInfo).port}`);
  }

  async stop(): Promise<void> {
    this.server.close();
    await this.libp2p.stop();
  }
}

let silent: Silent;
before(async () => {
  silent = await Silent.start();
});
after(() => silent.stop());

interface Going {
  /** Settles when the node closes. */
  readonly ended: Promise<unknown>;
  /** The operation waits for a peer by now. */
  begun(): boolean;
}

const requests = (protocol: string) => () => silent.requests.has(protocol);

const goings: Readonly<Record<string, (node: LowLevelNode, network: Network, id: PeerId) => Promise<Going>>> = {
  "a block is fetched": async (node, { bitswap }) => ({
    ended: node.reader()(nowhere),
    begun: () => bitswap.wantlist().length > 0,
  }),
  "a provider is looked for": async (_, { routing }) => ({
    ended: Array.fromAsync(routing.findProviders(nowhere, { count: 1, signal: never })),
    begun: requests(routingProtocol),
  }),
  "a name is resolved": async ({ names }, _, id) => ({
    ended: names.resolve(id.toString()),
    begun: requests(routingProtocol),
  }),
  "a name is published": async ({ names }) => ({
    ended: names.publish(await names.key("self"), `/ipfs/${nowhere}`),
    begun: requests(routingProtocol),
  }),
  "an echo is waited for": async (_, { swarm }, id) => ({
    ended: swarm.ping.open(id).then((echo) => echo.ping()),
    begun: requests(pingProtocol),
  }),
  "somebody is dialled": async (_, { swarm }) => ({
    ended: swarm.connect(peerIdFromPrivateKey(await generateKeyPair("Ed25519")), [silent.mute]),
    begun: requests("connection"),
  }),
  "a tunnel is open": async (_, { p2p }, id) => {
    await p2p.forward(tunnel, multiaddr("/ip4/127.0.0.1/tcp/0"), { id, addresses: [] }, { custom: false });
    const port = Number(p2p.list()[0]?.listen.split("/").at(-1));
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    return { ended: once(socket.resume(), "close"), begun: requests(tunnel) };
  },
  "a tunnel waits for its target": async (_, { p2p, swarm }, id) => {
    await p2p.listen(tunnel, silent.mute, { custom: false, reportPeer: false });
    const [address] = swarm.listenAddresses();
    const stream = await silent.libp2p.dialProtocol(
      (address as ReturnType<typeof multiaddr>).encapsulate(`/p2p/${swarm.id}`),
      tunnel,
    );
    assert.ok(id);
    return { ended: once(stream as never, "close"), begun: requests("connection") };
  },
  "messages are waited for": async (_, { pubsub }) => ({
    ended: Array.fromAsync((pubsub as NonNullable<typeof pubsub>).subscribe("topic")),
    begun: () => true,
  }),
};

/** A node that knows no other peers. */
async function open(t: TestContext) {
  const repo = await mkdtemp(join(tmpdir(), "modhost-network-closing-"));
  t.after(() => rm(repo, { recursive: true }));
  const node = await openNode({ repo, profile: "local", pubsub: true, stores: async () => memoryStores() });
  t.after(() => node.close());
  await node.goOnline();
  const network = await node.network();
  const { peerId } = silent.libp2p;
  silent.echoes = true;
  await network.swarm.connect(peerId, silent.libp2p.getMultiaddrs());
  await until(() => (network.routing.dht?.lan.size ?? 0) > 0, "the peer is in the table");
  silent.echoes = false;
  return { node, network, id: peerId };
}

/** Returns the resources that keep the process alive, without those of the test runner. */
const alive = () => process.getActiveResourcesInfo().filter((name) => /TCP|UDP|Pipe/.test(name)).length;

describe("closing a node ends all its network operations, and leaves nothing open", () => {
  for (const [what, begin] of Object.entries(goings)) {
    test(what, { timeout: 200_000 }, async (t) => {
      const before = alive();
      const { node, network, id } = await open(t);
      silent.requests.clear();
      const { ended, begun } = await begin(node, network, id);
      const outcome = ended.then(
        () => "ended",
        () => "rejected",
      );
      await until(begun, "the operation waits for a peer");
      const started = performance.now();
      await node.close();
      assert.match(await outcome, /ended|rejected/);
      // Without the close, each operation would end after half a minute, or never.
      assert.ok(performance.now() - started < 25_000, `${performance.now() - started} ms`);
      assert.equal(network.libp2p.status, "stopped");
      await until(() => alive() <= before, `${process.getActiveResourcesInfo()}`);
    });
  }
});
