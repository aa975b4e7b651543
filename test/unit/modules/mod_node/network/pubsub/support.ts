/** Nodes on loopback that use pubsub, and a peer that sends what a test tells it to send. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { RPC } from "@libp2p/gossipsub/message";
import type { Stream } from "@libp2p/interface";
import type { Libp2p } from "libp2p";
import type { Network } from "#node/network/network.ts";
import { lengthPrefixed } from "#node/network/pubsub/message.ts";
import type { Pubsub } from "#node/network/pubsub/pubsub.ts";
import type { PubsubMessage } from "#node/network/pubsub/subscription.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";
import { host } from "#test/unit/modules/mod_node/network/bitswap/support.ts";

export interface TestNode {
  readonly node: LowLevelNode;
  readonly network: Network;
  readonly pubsub: Pubsub;
  /** Level and message of log lines. */
  readonly logged: readonly string[];
  readonly notices: readonly string[];
}

/** A node that is closed after the test; `config` has values of the configuration by path. */
export async function startNode(t: TestContext, config: Readonly<Record<string, unknown>> = {}): Promise<TestNode> {
  const folder = await mkdtemp(join(tmpdir(), "modhost-pubsub-"));
  const notices: string[] = [];
  const onNotice = (sentence: string) => notices.push(sentence);
  const node = await openNode({ repo: folder, profile: "local", pubsub: true, onNotice });
  t.after(async () => {
    await node.close();
    await rm(folder, { recursive: true, force: true });
  });
  for (const [path, value] of Object.entries(config)) await node.repo.config.set(path, () => value);
  const logged: string[] = [];
  node.log.setLevel("pubsub", "debug");
  node.log.listen(({ level, message }) => logged.push(`${level} ${message}`));
  await node.goOnline();
  const network = await node.network();
  return { node, network, pubsub: network.pubsub as Pubsub, logged, notices };
}

export const connect = ({ network: from }: TestNode, { network: to }: TestNode) =>
  from.swarm.connect(to.swarm.id, to.swarm.listenAddresses());

/** Resolves when the node knows that this peer follows the topic. */
export function joined({ pubsub }: TestNode, topic: string, peer: TestNode | Libp2p): Promise<void> {
  const id = "network" in peer ? peer.network.swarm.id : peer.peerId;
  const { promise, resolve } = Promise.withResolvers<void>();
  const isThere = () => pubsub.peers(topic).some((each) => each.equals(id));
  const before = pubsub.onPeerSubscribed;
  pubsub.onPeerSubscribed = (one, other) => {
    before?.(one, other);
    if (isThere()) resolve();
  };
  if (isThere()) resolve();
  return promise;
}

/** Connects two nodes that follow the topic, and waits until they know about each other. */
export async function follow(topic: string, a: TestNode, b: TestNode) {
  const readers = [a.pubsub.subscribe(topic), b.pubsub.subscribe(topic)] as const;
  const known = [joined(a, topic, b), joined(b, topic, a)];
  await connect(a, b);
  await Promise.all(known);
  return readers;
}

export async function take(reader: AsyncIterator<PubsubMessage>, count: number): Promise<PubsubMessage[]> {
  const taken: PubsubMessage[] = [];
  while (taken.length < count) {
    const { done, value } = await reader.next();
    if (done === true) break;
    taken.push(value);
  }
  return taken;
}

export const textsOf = (messages: readonly PubsubMessage[]): string[] =>
  messages.map(({ data }) => Buffer.from(data).toString());

/** A plain libp2p peer with a stream to a node, on which it sends arbitrary data. */
export async function startStranger(t: TestContext, to: TestNode, onRpc?: (rpc: RPC, stream: Stream) => void) {
  const libp2p = await host(t);
  await libp2p.handle("/meshsub/1.1.0", (stream) => {
    if (onRpc === undefined) stream.pause();
    else {
      stream.addEventListener("message", ({ data }) => {
        const bytes = data instanceof Uint8Array ? data : data.subarray();
        onRpc(RPC.decode(bytes.subarray(bytes.findIndex((byte) => byte < 0x80) + 1)), stream);
      });
    }
  });
  const connection = await libp2p.dial([...to.network.libp2p.getMultiaddrs()]);
  const open = () => connection.newStream("/meshsub/1.1.0");
  const stream = await open();
  const say = (rpc: Partial<RPC>, into = stream) =>
    into.send(lengthPrefixed(RPC.encode({ subscriptions: [], messages: [], ...rpc })));
  return { libp2p, connection, stream, say, open };
}
