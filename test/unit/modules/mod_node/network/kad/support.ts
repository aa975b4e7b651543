/** Nodes on loopback whose routing tables are inspected, and peers of other implementations. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { identify } from "@libp2p/identify";
import { type KadDHT, kadDHT, passthroughMapper } from "@libp2p/kad-dht";
import { noise } from "@libp2p/noise";
import { ping } from "@libp2p/ping";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p, type Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { PeerId } from "#node/formats/peer_id.ts";
import { addEntries, addSettings } from "#node/index.ts";
import { eventTypes, type RoutingEvent } from "#node/network/kad/events.ts";
import { selectors, validators } from "#node/network/kad/validators.ts";
import type { Network } from "#node/network/network.ts";
import type { LowLevelNode, NodeOptions } from "#node/node/low_level_node.ts";
import { openNode } from "#node/node/open.ts";

export interface RoutingNode extends AsyncDisposable {
  readonly node: LowLevelNode;
  readonly network: Network;
  readonly routing: Network["routing"];
  readonly id: PeerId;
}

export interface NodeSetup {
  /** Reuses a repo, which is not removed when the node closes. */
  readonly folder?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly options?: Partial<NodeOptions>;
}

export async function startNode({ folder, config = {}, options }: NodeSetup = {}): Promise<RoutingNode> {
  const repo = folder ?? (await mkdtemp(join(tmpdir(), "modhost-routing-")));
  const node = await openNode({ ...options, repo, profile: "local" });
  const close = async () => {
    await node.close();
    if (folder === undefined) await rm(repo, { recursive: true, force: true });
  };
  try {
    for (const [path, value] of Object.entries(config)) await node.repo.config.set(path, () => value);
    await node.goOnline();
    const network = await node.network();
    return { node, network, routing: network.routing, id: network.swarm.id, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Timeout of everything that a test waits for. */
export const soon = (): AbortSignal => AbortSignal.timeout(60_000);

export async function until(condition: () => boolean | Promise<boolean>, signal = soon()): Promise<void> {
  while (!(await condition())) await pause(10, undefined, { signal });
}

export const known = ({ routing }: RoutingNode): number => routing.dht?.lan.size ?? 0;

/** Resolves when both nodes know each other. */
export async function meet(one: RoutingNode, other: RoutingNode): Promise<void> {
  await one.network.swarm.connect(other.id, other.network.swarm.listenAddresses());
  await until(() => known(one) > 0 && known(other) > 0);
}

export async function add({ node }: RoutingNode, text: string): Promise<CID> {
  const body = (async function* () {
    yield Buffer.from(text);
  })();
  const entries = (async function* () {
    yield { path: "file", kind: "file", body } as const;
  })();
  const events = await Array.fromAsync(addEntries(node, entries, addSettings({}), { pin: true }));
  return events.findLast(({ built }) => built !== undefined)?.built?.cid as CID;
}

/** Resolves to the events of a search, and the text of its error. */
export async function outcome(events: AsyncIterable<RoutingEvent>) {
  const reported: RoutingEvent[] = [];
  try {
    for await (const event of events) reported.push(event);
    return { events: reported };
  } catch (error) {
    return { events: reported, failure: (error as Error).message };
  }
}

export const ofType = (events: readonly RoutingEvent[], name: keyof typeof eventTypes): readonly RoutingEvent[] =>
  events.filter(({ type }) => type === eventTypes[name]);

export const providersIn = (events: readonly RoutingEvent[]): readonly string[] =>
  ofType(events, "provider").map(({ responses }) => String(responses?.[0]?.id));

/**
 * Resolves when a node finds a provider. Announcements have no response, so a sender does not know
 * when the receiver has stored them.
 */
export const untilProvided = (asker: RoutingNode, cid: CID, provider: RoutingNode): Promise<void> =>
  until(async () => {
    const { events } = await outcome(asker.routing.findProviders(cid, { count: 1, signal: soon() }));
    return providersIn(events).includes(provider.id.toString());
  });

type Stranger = Libp2p<{ identify: unknown; ping: ReturnType<ReturnType<typeof ping>>; dht: KadDHT }>;

/** A plain libp2p peer in the local table. */
export async function startStranger(): Promise<Stranger & AsyncDisposable> {
  const stranger = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services: {
      identify: identify(),
      ping: ping({ maxInboundStreams: 8, maxOutboundStreams: 8 }),
      dht: kadDHT({
        protocol: "/ipfs/lan/kad/1.0.0",
        clientMode: false,
        peerInfoMapper: passthroughMapper,
        initialQuerySelfInterval: 10,
        validators,
        selectors,
      }),
    },
  });
  return Object.assign(stranger, { [Symbol.asyncDispose]: async () => stranger.stop() });
}
