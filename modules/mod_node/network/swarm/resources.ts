/** Reports the resources that connections use, and their limits. */
import { readdir, readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import type { Connection, Stream } from "@libp2p/interface";
import type { Libp2p } from "libp2p";

/** Current use and limit of a resource. */
export interface ResourceUse {
  readonly used: number;
  /** Undefined if there is no limit. */
  readonly limit: number | undefined;
}

/** Resources that one part of the network uses. */
export interface ResourceScope {
  /** Bytes of memory. Memory is not attributed to peers and protocols: it is 0 for them. */
  readonly memory: ResourceUse;
  readonly descriptors: ResourceUse;
  readonly connections: ResourceUse;
  readonly connectionsInbound: ResourceUse;
  readonly connectionsOutbound: ResourceUse;
  readonly streams: ResourceUse;
  readonly streamsInbound: ResourceUse;
  readonly streamsOutbound: ResourceUse;
}

export interface SwarmResources {
  /** Resources of the whole process. */
  readonly system: ResourceScope;
  /** Resources of connections that are being established, and of streams without a protocol yet. */
  readonly transient: ResourceScope;
  /** Resources by service, under the names that Kubo uses. */
  readonly services: ReadonlyMap<string, ResourceScope>;
  /** Resources by the protocol of open streams. */
  readonly protocols: ReadonlyMap<string, ResourceScope>;
  /** Resources by the id of connected peers. */
  readonly peers: ReadonlyMap<string, ResourceScope>;
}

export interface ConnectionBounds {
  /** Number of connections above which further ones are refused. */
  readonly open: number;
  /** Maximum number of inbound connections in negotiation. */
  readonly pendingInbound: number;
  readonly queuedDials: number;
  /**
   * Bytes and descriptors that the configuration allows; by default, those available to the process
   * and the machine.
   */
  readonly memory?: number | undefined;
  readonly descriptors?: number | undefined;
}

/** Prefixes of the protocols of each service. */
const SERVICES: Readonly<Record<string, string>> = {
  "libp2p.autonat": "/libp2p/autonat/",
  "libp2p.holepunch": "/libp2p/dcutr",
  "libp2p.identify": "/ipfs/id/",
  "libp2p.ping": "/ipfs/ping/",
  "libp2p.relay/v2": "/libp2p/circuit/relay/0.2.0/",
};

export async function resourcesOf(
  libp2p: Pick<Libp2p, "getConnections" | "getDialQueue">,
  bounds: ConnectionBounds,
): Promise<SwarmResources> {
  const connections = libp2p.getConnections();
  const streams = connections.flatMap((connection) => connection.streams);
  const spoken = streams.filter(({ protocol }) => protocol !== "");
  const byPeer = Map.groupBy(connections, ({ remotePeer }) => remotePeer.toString());
  const byProtocol = Map.groupBy(spoken, ({ protocol }) => protocol);
  const dials = libp2p.getDialQueue();
  const open = bounds.open === Number.MAX_SAFE_INTEGER ? undefined : bounds.open;
  return {
    system: {
      ...counted(connections, streams),
      connections: { used: connections.length, limit: open },
      connectionsInbound: { used: inbound(connections), limit: open },
      memory: { used: process.memoryUsage.rss(), limit: bounds.memory ?? memoryLimit() },
      descriptors: await descriptors(connections.length, bounds.descriptors),
    },
    transient: {
      ...counted(
        [],
        streams.filter(({ protocol }) => protocol === ""),
      ),
      connections: { used: dials.length, limit: bounds.pendingInbound + bounds.queuedDials },
      connectionsInbound: { used: 0, limit: bounds.pendingInbound },
      connectionsOutbound: { used: dials.length, limit: bounds.queuedDials },
    },
    services: new Map(
      Object.entries(SERVICES).map(([name, prefix]) => {
        return [
          name,
          counted(
            [],
            spoken.filter(({ protocol }) => protocol.startsWith(prefix)),
          ),
        ];
      }),
    ),
    protocols: new Map([...byProtocol].map(([name, own]) => [name, counted([], own)])),
    peers: new Map(
      [...byPeer].map(([id, own]) => [
        id,
        counted(
          own,
          own.flatMap((connection) => connection.streams),
        ),
      ]),
    ),
  };
}

const inbound = (all: readonly (Connection | Stream)[]): number =>
  all.filter(({ direction }) => direction === "inbound").length;

const free = (used: number): ResourceUse => ({ used, limit: undefined });

/** Counts connections and streams. Each direct connection has a descriptor. */
function counted(connections: readonly Connection[], streams: readonly Stream[]): ResourceScope {
  const direct = connections.filter(({ direct }) => direct).length;
  return {
    memory: free(0),
    descriptors: free(direct),
    connections: free(connections.length),
    connectionsInbound: free(inbound(connections)),
    connectionsOutbound: free(connections.length - inbound(connections)),
    streams: free(streams.length),
    streamsInbound: free(inbound(streams)),
    streamsOutbound: free(streams.length - inbound(streams)),
  };
}

/**
 * Returns the bytes that the process may use: the limit of its control group, else the memory of
 * the machine.
 */
function memoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/**
 * Resolves to the descriptors of the process. If the system does not report them, the number of
 * connections is used.
 */
async function descriptors(connections: number, allowed: number | undefined): Promise<ResourceUse> {
  try {
    const [open, limits] = await Promise.all([readdir("/proc/self/fd"), readFile("/proc/self/limits", "utf8")]);
    const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return { used: open.length, limit: allowed ?? (limit === undefined ? undefined : Number(limit)) };
  } catch {
    return { used: connections, limit: allowed };
  }
}
