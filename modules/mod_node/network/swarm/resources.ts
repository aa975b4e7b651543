/** What connections take of the process and the machine, and how much they may. */
import { readdir, readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import type { Connection, Stream } from "@libp2p/interface";
import type { Libp2p } from "libp2p";

/** How much is taken of what there may be. */
export interface ResourceUse {
  readonly used: number;
  /** Undefined for none. */
  readonly limit: number | undefined;
}

/** What one part of the network takes. */
export interface ResourceScope {
  /** Bytes. Memory is not told apart by peers and protocols: of them it is 0. */
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
  /** The whole process. */
  readonly system: ResourceScope;
  /** Connections that are being made, and streams that have no protocol yet. */
  readonly transient: ResourceScope;
  /** By the names that the reference has for what protocols are for. */
  readonly services: ReadonlyMap<string, ResourceScope>;
  /** Those that streams are open for. */
  readonly protocols: ReadonlyMap<string, ResourceScope>;
  /** Connected ones, by id. */
  readonly peers: ReadonlyMap<string, ResourceScope>;
}

export interface ConnectionBounds {
  /** Connections beyond which none is accepted. */
  readonly open: number;
  /** Inbound ones that are being negotiated. */
  readonly pendingInbound: number;
  readonly queuedDials: number;
  /** Bytes and descriptors that the configuration allows; without, what process and machine have. */
  readonly memory?: number | undefined;
  readonly descriptors?: number | undefined;
}

/** How the protocols of a service begin. */
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

/** Each direct connection has a descriptor. */
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

/** Bytes that the process may take: what its control group leaves it, else what the machine has. */
function memoryLimit(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Of the process. Where the system does not tell, those of the connections. */
async function descriptors(connections: number, allowed: number | undefined): Promise<ResourceUse> {
  try {
    const [open, limits] = await Promise.all([readdir("/proc/self/fd"), readFile("/proc/self/limits", "utf8")]);
    const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return { used: open.length, limit: allowed ?? (limit === undefined ? undefined : Number(limit)) };
  } catch {
    return { used: connections, limit: allowed };
  }
}
