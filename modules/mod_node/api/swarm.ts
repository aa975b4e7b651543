/** Connections to peers. */
import type { Connection } from "@libp2p/interface";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import {
  byPeer,
  type Multiaddr,
  parseMultiaddr,
  parsePeerAddress,
  transportOf,
  withPeer,
} from "../network/swarm/multiaddr.ts";
import { resolvePeers } from "../network/swarm/resolve_peers.ts";
import type { SwarmResources } from "../network/swarm/resources.ts";
import type { Swarm } from "../network/swarm/swarm.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { NodeError, reworded } from "../util/errors.ts";
import { formatDuration } from "../util/go/duration.ts";
import { type Address, type CallOptions, callSignal, listOf, type PeerName } from "./common.ts";
import { type IdResult, identityOf } from "./id.ts";

export type { ResourceScope, ResourceUse, SwarmResources } from "../network/swarm/resources.ts";

export interface SwarmAddrsResult {
  readonly id: PeerId;
  /** Sorted addresses, without the id. */
  readonly addrs: readonly Multiaddr[];
}

export interface SwarmLocalAddrsOptions extends CallOptions {
  /** Append the id of the node to each address. */
  readonly id?: boolean | undefined;
}

export interface SwarmPeersOptions extends CallOptions {
  /** Same as all of the following options. */
  readonly verbose?: boolean | undefined;
  readonly streams?: boolean | undefined;
  readonly latency?: boolean | undefined;
  readonly direction?: boolean | undefined;
  /** Also report what the peers say about themselves. */
  readonly identify?: boolean | undefined;
  /**
   * Also report `agentVersion` and `opened`, which the RPC API does not have; not part of
   * `verbose`.
   */
  readonly details?: boolean | undefined;
}

/** An open connection. */
export interface SwarmPeersResult {
  /** Address of the peer, without its id. */
  readonly addr: Multiaddr;
  readonly peer: PeerId;
  /** Always empty: not reported to RPC clients. */
  readonly muxer: string;
  /**
   * Average round-trip time such as `1.5ms`; `n/a` if it was never measured; empty without
   * `latency`.
   */
  readonly latency: string;
  /** Open streams by protocol; null without `streams`. */
  readonly streams: readonly { readonly Protocol: string }[] | null;
  /**
   * The side that opened the connection; undefined without `direction`. The client libraries
   * misread this field of the RPC API.
   */
  readonly direction: Connection["direction"] | undefined;
  /** Facts that the peer reports about itself; present only with `identify` or `verbose`. */
  readonly identify?: IdResult;
  /** The agent version of the peer, empty while it is unknown; undefined without `details`. */
  readonly agentVersion?: string;
  /** When the connection was opened; undefined without `details`. */
  readonly opened?: Date;
}

export interface SwarmFiltersApi {
  /** Address ranges that are neither dialled nor accepted, such as `/ip4/192.168.0.0/ipcidr/16`. */
  list(options?: CallOptions): Promise<readonly string[]>;
  /** Adds ranges; resolves to them, each once. @throws NodeError for an invalid range */
  add(range: string | readonly string[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Removes ranges, or all with `all`; resolves to the ranges removed from the configuration, null
   * if it had none.
   */
  rm(range: string | readonly string[], options?: CallOptions): Promise<readonly string[] | null>;
}

/** A peer to which the node maintains a connection. */
export interface PeeringPeer {
  readonly id: PeerId;
  /** Addresses without the id; empty if the routing system finds them. */
  readonly addrs: readonly Multiaddr[];
}

export interface SwarmPeeringApi {
  /**
   * Maintains a connection to the peer of each address, which ends in its id: the peer is dialled
   * at once and whenever the connection is lost, even after a restart. New addresses replace
   * previous ones. Resolves to the peers, each once.
   *
   * @throws NodeError `invalid p2p multiaddr`, `failed to parse multiaddr …`
   */
  add(address: Address | readonly Address[], options?: CallOptions): Promise<readonly PeerId[]>;
  /** Resolves to the peers that were added, and to those of `Peering.Peers`. */
  ls(options?: CallOptions): Promise<readonly PeeringPeer[]>;
  /**
   * Stops maintaining connections to these peers; open connections stay open. A peer of
   * `Peering.Peers` is added again when that setting changes, and after a restart.
   */
  rm(peer: PeerName | readonly PeerName[], options?: CallOptions): Promise<readonly PeerId[]>;
}

/** Whether other peers can reach this node. */
export interface SwarmAutonatResult {
  /** `Public` if an address is reachable, `Private` if all tested addresses are unreachable. */
  readonly reachability: "Unknown" | "Public" | "Private";
  /** Public addresses, without the id. */
  readonly reachable: readonly Multiaddr[];
  readonly unreachable: readonly Multiaddr[];
  /** Announced addresses that no peer has tested. */
  readonly unknown: readonly Multiaddr[];
}

/** All methods reject with a NodeError while the node is offline. */
export interface SwarmApi {
  /**
   * Resolves to all peers with known addresses, including this node, sorted by the text of the id.
   */
  addrs(options?: CallOptions): Promise<readonly SwarmAddrsResult[]>;
  /** Resolves to the addresses that this node announces, sorted. */
  localAddrs(options?: SwarmLocalAddrsOptions): Promise<readonly Multiaddr[]>;
  /** Resolves to the addresses that this node listens on, sorted. */
  listenAddrs(options?: CallOptions): Promise<readonly Multiaddr[]>;
  /** Resolves to the open connections, sorted by address. */
  peers(options?: SwarmPeersOptions): Promise<readonly SwarmPeersResult[]>;
  /**
   * Connects to the peer of each address, which ends in its id; resolves to `connect <id> success`
   * for each.
   *
   * @throws NodeError `connect <id> failure: …` for the first that cannot be reached
   */
  connect(address: Address | readonly Address[], options?: CallOptions): Promise<readonly string[]>;
  /**
   * Closes connections to an address, or to a peer by `/p2p/<id>`. Resolves to a result for each
   * argument.
   */
  disconnect(address: Address | readonly Address[], options?: CallOptions): Promise<readonly string[]>;
  readonly filters: SwarmFiltersApi;
  readonly peering: SwarmPeeringApi;
  /** Resolves to the resources that connections use, and to their limits. */
  resources(options?: CallOptions): Promise<SwarmResources>;
  /** Resolves to whether other peers can reach this node, according to the peers that tested it. */
  autonat(options?: CallOptions): Promise<SwarmAutonatResult>;
}

const ADDR_FILTERS = "Swarm.AddrFilters";

export function swarmApi(node: LowLevelNode): SwarmApi {
  const opened = async (): Promise<Swarm> => (await node.network("failure", "OFFLINE")).swarm;
  return {
    async addrs() {
      const book = [...(await (await opened()).addressBook())].sort(([a], [b]) => (a < b ? -1 : 1));
      return book.map(([id, addrs]) => ({ id: parsePeerId(id), addrs }));
    },
    async localAddrs({ id } = {}) {
      const swarm = await opened();
      const known = swarm.announcedAddresses();
      return id === true ? known.map((address) => withPeer(address, swarm.id)) : known;
    },
    async listenAddrs() {
      const swarm = await opened();
      const relay = swarm.relayEnabled ? [parseMultiaddr("/p2p-circuit")] : [];
      return [...swarm.listenAddresses(), ...relay].sort((a, b) => (String(a) < String(b) ? -1 : 1));
    },
    async peers(options = {}) {
      const swarm = await opened();
      const connections = swarm.connections();
      const isMore = [options.details, options.identify, options.verbose].includes(true);
      if (!isMore) return connections.map((connection) => shownPeer(swarm, connection, options));
      return Promise.all(connections.map((connection) => shownWithDetails(swarm, connection, options)));
    },
    async connect(addresses, options = {}) {
      const signal = callSignal(options);
      const done: string[] = [];
      for (const { id, addresses: known } of await resolvePeers(listOf(addresses).map(String), signal)) {
        try {
          await (await opened()).connectTagged(id, known, signal);
        } catch (error) {
          signal.throwIfAborted();
          const failed = failureOf(error);
          throw reworded(failed, `connect ${id} failure: ${failed.message}`);
        }
        done.push(`connect ${id} success`);
      }
      return done;
    },
    async disconnect(addresses, options = {}) {
      const done: string[] = [];
      for (const { id, addresses: named } of await resolvePeers(listOf(addresses).map(String), callSignal(options))) {
        for (const one of named.length === 0 ? [undefined] : named) {
          const ended = opened().then((swarm) => swarm.disconnect(id, one));
          const failed = await ended.catch(failureOf);
          done.push(failed === undefined ? `disconnect ${id} success` : `disconnect ${id} failure: ${failed.message}`);
        }
      }
      return done;
    },
    filters: filtersApi(node),
    peering: peeringApi(node),
    resources: async () => (await opened()).resources(),
    async autonat() {
      const { reachable, unreachable, unknown } = (await connected(node)).reachability();
      const reachability = reachable.length > 0 ? "Public" : unreachable.length > 0 ? "Private" : "Unknown";
      return { reachability, reachable, unreachable, unknown };
    },
  };
}

function shownPeer(swarm: Swarm, connection: Connection, options: SwarmPeersOptions): SwarmPeersResult {
  const { remoteAddr, remotePeer, direction, streams } = connection;
  const isRequested = (what: "latency" | "streams" | "direction") => options.verbose === true || options[what] === true;
  const latency = swarm.ping.latencies.of(remotePeer);
  const protocols = streams.map(({ protocol }) => protocol).sort();
  return {
    addr: transportOf(remoteAddr),
    peer: remotePeer,
    muxer: "",
    latency: !isRequested("latency") ? "" : latency === undefined ? "n/a" : formatDuration(latency),
    streams: isRequested("streams") ? protocols.map((Protocol) => ({ Protocol })) : null,
    direction: isRequested("direction") ? direction : undefined,
  };
}

async function shownWithDetails(swarm: Swarm, connection: Connection, options: SwarmPeersOptions) {
  const identify = await identityOf(swarm, connection.remotePeer);
  const { agentVersion } = identify;
  return {
    ...shownPeer(swarm, connection, options),
    ...((options.identify === true || options.verbose === true) && { identify }),
    ...(options.details === true && { agentVersion, opened: new Date(connection.timeline.open) }),
  };
}

/** Rethrows everything that is not a NodeError. */
function failureOf(error: unknown): NodeError {
  if (error instanceof NodeError) return error;
  throw error;
}

const connected = async (node: LowLevelNode): Promise<Swarm> => (await node.network()).swarm;

function peeringApi(node: LowLevelNode): SwarmPeeringApi {
  return {
    async add(given) {
      const { keepers } = await connected(node);
      const peers = byPeer(once(listOf(given).map(String)).map(parsePeerAddress));
      await keepers.addPeered(peers);
      return peers.map(({ id }) => id);
    },
    ls: async () => (await connected(node)).keepers.peered.map(({ id, addresses: addrs }) => ({ id, addrs })),
    async rm(given) {
      const { keepers } = await connected(node);
      const ids = listOf(given).map((peer) => parsePeerId(String(peer)));
      await keepers.removePeered(ids);
      return ids;
    },
  };
}

const once = (texts: readonly string[]): readonly string[] => [...new Set(texts)];

function filtersApi(node: LowLevelNode): SwarmFiltersApi {
  const opened = async () => (await node.network()).swarm.filters;
  return {
    list: async () => (await opened()).list(),
    async add(given) {
      const filters = await opened();
      const ranges = once(listOf(given));
      for (const range of ranges) filters.add(range);
      await node.repo.config.update(ADDR_FILTERS, (before) => once([...ranges, ...(before ?? [])]));
      return ranges;
    },
    async rm(given) {
      const filters = await opened();
      const ranges = listOf(given);
      const all = ranges[0] === "all" || ranges[0] === "*";
      if (all) filters.clear();
      else for (const range of ranges) filters.remove(range);
      let removed: readonly string[] | null = null;
      await node.repo.config.update(ADDR_FILTERS, (before) => {
        removed = all ? before : (before ?? []).filter((range) => ranges.includes(range));
        return all ? null : (before ?? []).filter((range) => !ranges.includes(range));
      });
      return removed;
    },
  };
}
