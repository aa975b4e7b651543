/**
 * Accesses the routing table inside the library's DHT. The library exposes neither the peers in the
 * table nor events for added and removed peers, and cannot remove an unreachable peer. `stats dht`
 * lists the peers, and providing waits for the first one.
 */
import type { Connection } from "@libp2p/interface";
import type { KadDHTComponents } from "@libp2p/kad-dht";
import type { PeerId } from "../../../formats/peer_id.ts";
import type { Patch, PatchNotices } from "../../swarm/patches/notices.ts";

export const patch: Patch = {
  library: "@libp2p/kad-dht",
  version: "16.4.5",
  without: "all connected peers count as the routing table, and stats dht shows no buckets",
};

/** The parts of the library's DHT that this patch uses. */
interface KadInternals {
  readonly routingTable: EventTarget & {
    readonly size: number;
    readonly kb: {
      readonly localPeer?: { readonly kadId: Uint8Array };
      toIterable(): Iterable<{ readonly kadId: Uint8Array; readonly peerId: PeerId; readonly lastPing: number }>;
    };
    remove(peer: PeerId): Promise<void>;
  };
  readonly routingTableRefresh: {
    readonly commonPrefixLengthRefreshedAt: readonly (Date | undefined)[];
    refreshTable: () => void;
  };
}

export interface TablePeer {
  readonly id: PeerId;
  /**
   * Number of leading bits that its key shares with the node's own, which is the index of its
   * bucket.
   */
  readonly commonPrefix: number;
  /** When the library last pinged the peer, in milliseconds since 1970. */
  readonly lastPing: number;
}

export interface RoutingTableView {
  /** Number of peers in the table. */
  readonly size: number;
  peers(): Iterable<TablePeer>;
  /** Returns the time of the last refresh of that bucket. */
  refreshedAt(commonPrefix: number): Date | undefined;
  onAdded(listener: () => void): void;
  onRemoved(listener: (id: PeerId) => void): void;
  /** Removes a peer from the table. Never rejects. */
  remove(id: PeerId): Promise<void>;
  /**
   * Must be called before the DHT stops: otherwise a running refresh would restart its timer when
   * it ends.
   */
  stopRefreshing(): void;
}

type Components = Pick<KadDHTComponents, "events"> & {
  readonly connectionManager: { getConnections(): readonly Connection[] };
};

/**
 * Returns the table of a DHT of the library; if it is not accessible, the connected peers serve as
 * the table.
 */
export function routingTableOf(kad: object, components: Components, notices: PatchNotices): RoutingTableView {
  const { routingTable, routingTableRefresh } = kad as Partial<KadInternals>;
  const parts = {
    "routingTable.size": routingTable?.size,
    "routingTable.addEventListener": routingTable?.addEventListener,
    "routingTable.remove": routingTable?.remove,
    "routingTable.kb.toIterable": routingTable?.kb?.toIterable,
    "routingTableRefresh.refreshTable": routingTableRefresh?.refreshTable,
    "routingTableRefresh.commonPrefixLengthRefreshedAt": routingTableRefresh?.commonPrefixLengthRefreshedAt,
  };
  return notices.isApplicable(patch, parts) ? viewOf(kad as KadInternals) : connectedPeers(components);
}

function viewOf({ routingTable, routingTableRefresh }: KadInternals): RoutingTableView {
  return {
    get size() {
      return routingTable.size;
    },
    *peers() {
      const own = routingTable.kb.localPeer?.kadId;
      if (own === undefined) return;
      for (const { kadId, peerId, lastPing } of routingTable.kb.toIterable()) {
        yield { id: peerId, commonPrefix: commonPrefixLength(own, kadId), lastPing };
      }
    },
    refreshedAt: (commonPrefix) => routingTableRefresh.commonPrefixLengthRefreshedAt[commonPrefix],
    onAdded: (listener) => routingTable.addEventListener("peer:add", () => listener()),
    onRemoved: (listener) =>
      routingTable.addEventListener("peer:remove", (event) => listener((event as CustomEvent<PeerId>).detail)),
    remove: (id) => routingTable.remove(id).catch(() => undefined),
    stopRefreshing() {
      routingTableRefresh.refreshTable = () => undefined;
    },
  };
}

function connectedPeers({ events, connectionManager }: Components): RoutingTableView {
  return {
    get size() {
      return new Set(connectionManager.getConnections().map(({ remotePeer }) => remotePeer.toString())).size;
    },
    peers: () => [],
    refreshedAt: () => undefined,
    onAdded: (listener) => events.addEventListener("peer:connect", () => listener()),
    onRemoved: (listener) => events.addEventListener("peer:disconnect", ({ detail }) => listener(detail)),
    remove: async () => undefined,
    stopRefreshing: () => undefined,
  };
}

/** Returns the number of leading bits that two keys of the same length share. */
export function commonPrefixLength(one: Uint8Array, other: Uint8Array): number {
  const at = one.findIndex((byte, index) => byte !== other[index]);
  if (at < 0) return one.length * 8;
  return at * 8 + Math.clz32((one[at] as number) ^ (other[at] as number)) - 24;
}
