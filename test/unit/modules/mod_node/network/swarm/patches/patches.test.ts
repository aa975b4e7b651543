/**
 * Tests that library patches match the installed versions, apply to them, and are omitted where
 * they cannot be applied.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, connect as dial, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { AutoNATComponents } from "@libp2p/autonat";
import type { GossipSub } from "@libp2p/gossipsub";
import type { MessageStream, PeerStore, Stream } from "@libp2p/interface";
import * as messages from "#node/network/kad/patches/limit_messages.ts";
import * as routingTable from "#node/network/kad/patches/routing_table.ts";
import * as gossipsub from "#node/network/pubsub/patches/gossipsub.ts";
import * as authors from "#node/network/pubsub/patches/name_authors.ts";
import * as autonat from "#node/network/swarm/patches/autonat/force_new_dials.ts";
import * as identify from "#node/network/swarm/patches/identify/stop_push.ts";
import * as middleware from "#node/network/swarm/patches/libp2p/copy_middleware.ts";
import * as announced from "#node/network/swarm/patches/libp2p/replace_announced.ts";
import * as upgraders from "#node/network/swarm/patches/libp2p/replace_upgraders.ts";
import * as addresses from "#node/network/swarm/patches/libp2p/stop_address_updates.ts";
import * as mplex from "#node/network/swarm/patches/mplex/mplex_factory.ts";
import * as noise from "#node/network/swarm/patches/noise/frame_decoder.ts";
import { type Patch, PatchNotices } from "#node/network/swarm/patches/notices.ts";
import * as peerStore from "#node/network/swarm/patches/peer_store/limit_addresses.ts";
import * as quicAcceptors from "#node/network/swarm/patches/quic/acceptors.ts";
import * as quicMuxer from "#node/network/swarm/patches/quic/muxer.ts";
import * as acceptedReads from "#node/network/swarm/patches/tcp/accepted_reads.ts";
import * as tcp from "#node/network/swarm/patches/tcp/coalesce_writes.ts";
import * as yamux from "#node/network/swarm/patches/yamux/receive_window.ts";
import { blockOf } from "#test/unit/modules/mod_node/network/bitswap/support.ts";
import { connect, startNode } from "#test/unit/modules/mod_node/network/pubsub/support.ts";

const modules = [
  messages,
  routingTable,
  gossipsub,
  authors,
  autonat,
  identify,
  middleware,
  addresses,
  announced,
  upgraders,
  mplex,
  noise,
  peerStore,
  quicAcceptors,
  quicMuxer,
  acceptedReads,
  tcp,
  yamux,
];

const root = new URL("../../../../../../../", import.meta.url);
const json = async (path: string) => JSON.parse(await readFile(new URL(path, root), "utf8"));

test("each patch names the version of its library that is installed and pinned", async () => {
  const { dependencies, devDependencies } = await json("package.json");
  for (const { library, version } of modules.map(({ patch }) => patch)) {
    assert.equal((await json(`node_modules/${library}/package.json`)).version, version, library);
    assert.equal({ ...dependencies, ...devDependencies }[library], version, library);
  }
});

test("all patches apply to the libraries as they are", async (t) => {
  const nodes = [await startNode(t), await startNode(t)] as const;
  const [one, two] = nodes;
  await connect(one, two);
  const block = blockOf(Buffer.from("over every layer"));
  await one.node.blocks.put([block]);
  const got = await two.node.reader({ signal: AbortSignal.timeout(60_000) })(block.cid);
  assert.equal(Buffer.from(got).toString(), "over every layer");
  const left = nodes.flatMap(({ notices }) => notices.filter((sentence) => / has no .* as version /.test(sentence)));
  assert.deepEqual(left, []);
});

interface Case {
  readonly patch: Patch;
  /**
   * Applies the patch twice to an object that lacks a part, and checks that the object stays
   * unchanged.
   */
  readonly apply: (notices: PatchNotices, t: TestContext) => unknown;
}

async function socketOf(t: TestContext): Promise<Socket> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const socket = dial(port, "127.0.0.1");
  await once(socket, "connect");
  t.after(() => server.close());
  t.after(() => socket.destroy());
  return socket;
}

const cases: readonly Case[] = [
  {
    patch: messages.patch,
    apply(notices) {
      const read = async () => undefined;
      const network = { _writeReadMessage: read };
      messages.limitMessages({ network }, { addProvider: () => {} }, notices);
      assert.deepEqual(network, { _writeReadMessage: read });
    },
  },
  {
    patch: routingTable.patch,
    async apply(notices) {
      const events = new EventTarget();
      const remotePeer = "a peer";
      const connectionManager = { getConnections: () => [{ remotePeer }, { remotePeer }] };
      const components = { events, connectionManager } as unknown as Parameters<typeof routingTable.routingTableOf>[1];
      const table = routingTable.routingTableOf({}, components, notices);
      assert.equal(table.size, 1);
      const added = [] as unknown[];
      const removed = [] as unknown[];
      table.onAdded(() => added.push("one"));
      table.onRemoved((id) => removed.push(id));
      events.dispatchEvent(new CustomEvent("peer:connect", { detail: remotePeer }));
      events.dispatchEvent(new CustomEvent("peer:disconnect", { detail: remotePeer }));
      assert.deepEqual([added, removed], [["one"], [remotePeer]]);
      assert.deepEqual([...table.peers()], []);
      table.stopRefreshing();
      await table.remove(remotePeer as never);
    },
  },
  {
    patch: gossipsub.patch,
    apply: (notices) => assert.equal(gossipsub.internalsOf({} as GossipSub, notices), undefined),
  },
  {
    patch: authors.patch,
    apply(notices) {
      const publish = async () => ({ recipients: [] });
      const router = { publish } as unknown as GossipSub;
      authors.nameAuthors(router, "self" as never, notices);
      assert.deepEqual(router, { publish });
    },
  },
  {
    patch: autonat.patch,
    apply(notices) {
      const components = { connectionManager: {} } as AutoNATComponents;
      assert.equal(autonat.forceNewDials(components, notices), components);
    },
  },
  { patch: identify.patch, apply: (notices) => assert.equal(identify.canStopPush({}, notices), false) },
  { patch: addresses.patch, apply: (notices) => assert.equal(addresses.canStopAddressUpdates({}, notices), false) },
  {
    patch: middleware.patch,
    apply(notices) {
      const registrar = {} as AutoNATComponents["registrar"];
      middleware.copyMiddlewareLists(registrar, notices);
      assert.deepEqual(registrar, {});
    },
  },
  {
    patch: noise.patch,
    apply(notices) {
      const connection = { decoder: {} };
      noise.replaceFrameDecoder(connection as unknown as MessageStream, notices);
      assert.deepEqual(connection, { decoder: {} });
    },
  },
  {
    patch: peerStore.patch,
    apply(notices) {
      const store = { merge: async () => undefined };
      const { merge } = store;
      peerStore.limitStoredAddresses(store as unknown as PeerStore, notices);
      assert.deepEqual(store, { merge });
    },
  },
  {
    patch: acceptedReads.patch,
    apply(notices) {
      const socket = { _handle: {} };
      acceptedReads.readAsDialled(socket as unknown as Socket, () => assert.fail("it was asked for"), notices);
      assert.deepEqual(socket, { _handle: {} });
    },
  },
  {
    patch: tcp.patch,
    async apply(notices, t) {
      const socket = await socketOf(t);
      const connection = { socket } as unknown as MessageStream;
      assert.equal(tcp.coalesceWrites(connection, notices), connection);
      assert.deepEqual(Object.keys(connection), ["socket"]);
    },
  },
  {
    patch: yamux.patch,
    apply(notices) {
      const stream = { recvWindow: 1 };
      yamux.widenWindow(stream as unknown as Stream, notices);
      assert.deepEqual(stream, { recvWindow: 1 });
    },
  },
];

for (const { patch, apply } of cases) {
  test(`a patch whose parts are missing is omitted and reported once: ${patch.library}, ${patch.without}`, async (t) => {
    const reported: string[] = [];
    const notices = new PatchNotices((sentence) => reported.push(sentence));
    await apply(notices, t);
    await apply(notices, t);
    assert.equal(reported.length, 1);
    assert.ok(reported[0]?.startsWith(`${patch.library} has no `), reported[0]);
    assert.ok(reported[0]?.endsWith(`as version ${patch.version} had: ${patch.without}`), reported[0]);
  });
}
