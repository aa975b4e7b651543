/** The swarm: manages connections to peers, their addresses, and the filters of addresses. */
import type { Connection, Peer } from "@libp2p/interface";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import type { PeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { PublicKey } from "../../storage/repo/identity.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { agentVersion } from "../../util/agent_version.ts";
import { settledWithin } from "../../util/async/within.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { AddedPeers } from "./added_peers.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { connectionLimits, resourceLimits } from "./connection_limits.ts";
import { dialError } from "./dial_error.ts";
import { Filters } from "./filters.ts";
import { createHost, type Host } from "./host.ts";
import { IdentifyWaiter } from "./identify_waiter.ts";
import { Keepers, type KeepersDeps } from "./keepers.ts";
import type { LiveHost } from "./live_host.ts";
import { byPeer, type Multiaddr, type PeerAddress, transportOf, withPeer } from "./multiaddr.ts";
import { PatchNotices } from "./patches/notices.ts";
import { PeerDatastore, peerKey } from "./peer_datastore.ts";
import type { PingService } from "./ping.ts";
import { isPublic } from "./public_ip.ts";
import type { Reachability } from "./reachability.ts";
import { resourcesOf, type SwarmResources } from "./resources.ts";

export interface SwarmDeps {
  readonly repo: Pick<Repo, "path" | "config" | "identity">;
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** The agent version that the node reports; by default this program and its version. */
  readonly agent?: string;
  /** Further services of libp2p. */
  readonly services?: ServiceFactoryMap;
  /**
   * Receives a sentence about each part of the configuration that could not be applied, while the
   * rest works.
   */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  readonly patches?: PatchNotices;
}

/** Data that a peer reports about itself through identify; empty if it has not reported any. */
export interface PeerInfo {
  readonly id: PeerId;
  readonly publicKey: PublicKey | undefined;
  /** Addresses without the id, sorted. */
  readonly addresses: readonly Multiaddr[];
  readonly agentVersion: string;
  readonly protocolVersion: string;
  /** Sorted protocol names. */
  readonly protocols: readonly string[];
}

/** Looks up a peer whose addresses are unknown. Rejects with the error for the caller. */
export type FindPeer = (id: PeerId, signal?: AbortSignal) => Promise<readonly Multiaddr[]>;

/** Milliseconds in which libp2p has to stop. */
const STOP_TIMEOUT_MS = 1500;
/** Timeout in milliseconds of all dials of `connectAll` together. */
const CONNECT_ALL_TIMEOUT_MS = 60_000;
/** Milliseconds that a disconnect waits for a peer to be identified. */
const MAX_IDENTIFY_WAIT_MS = 1000;
/** Tag that raises the value of a peer that a user connected to when connections are trimmed. */
const USER_TAGS = { "user-connect": { value: 100 } };

/** Creates a swarm without starting it. @throws NodeError for an invalid configuration */
export async function openSwarm(deps: SwarmDeps): Promise<Swarm> {
  const { config, identity } = deps.repo;
  const filters = filtersOf(config.value("Swarm.AddrFilters") ?? []);
  const limits = connectionLimits(config);
  const connected = new Set<string>();
  const datastore = await PeerDatastore.open(deps.metadata, { own: peerKey(identity.peerId), staying: connected });
  const added = await AddedPeers.open(deps.metadata);
  const discovery: { swarm?: Swarm } = {};
  const host = await createHost({
    repo: deps.repo,
    datastore,
    filters,
    limits,
    agent: deps.agent ?? agentVersion,
    patches: deps.patches ?? new PatchNotices(deps.onNotice),
    services: deps.services ?? {},
    onDiscovered: ({ id, multiaddrs }) => void discovery.swarm?.connect(id, multiaddrs).catch(() => undefined),
  });
  host.libp2p.addEventListener("peer:connect", ({ detail }) => connected.add(peerKey(detail)));
  host.libp2p.addEventListener("peer:disconnect", ({ detail }) => connected.delete(peerKey(detail)));
  discovery.swarm = new Swarm(deps, host, { datastore, filters, added });
  return discovery.swarm;
}

function filtersOf(texts: readonly string[]): Filters {
  const filters = new Filters();
  for (const text of texts) {
    try {
      filters.add(text);
    } catch (error) {
      throw failure("CONFIG_INVALID", { reason: `incorrectly formatted address filter in config: ${text}` }, error);
    }
  }
  return filters;
}

interface SwarmParts {
  readonly datastore: PeerDatastore;
  readonly filters: Filters;
  readonly added: AddedPeers;
}

export class Swarm {
  readonly libp2p: Libp2p;
  readonly ping: PingService;
  /** Address ranges that are neither dialled nor accepted. */
  readonly filters: Filters;
  /** Set by the network; without it only peers whose addresses are known can be dialled. */
  findPeer: FindPeer | undefined;
  /** The parts that dial and close connections automatically. */
  readonly keepers: Keepers;
  readonly #host: Host;
  readonly #datastore: PeerDatastore;
  readonly #deps: SwarmDeps;
  readonly #identify: IdentifyWaiter;

  constructor(deps: SwarmDeps, host: Host, { datastore, filters, added }: SwarmParts) {
    const { libp2p, ping } = host;
    const { log, repo } = deps;
    const { config } = repo;
    this.libp2p = libp2p;
    this.ping = ping;
    this.filters = filters;
    this.#host = host;
    this.#datastore = datastore;
    this.#deps = deps;
    this.#identify = new IdentifyWaiter(libp2p);
    const find: KeepersDeps["find"] = (id, signal) => this.findAddresses(id, signal);
    this.keepers = new Keepers({ libp2p, config, added, log, find });
    libp2p.addEventListener("transport:listening", () => host.announceAll());
  }

  /**
   * Applies the current values of `Swarm.ConnMgr` and `Swarm.ResourceMgr`. @throws NodeError for an
   * invalid value
   */
  renewLimits(): void {
    this.keepers.renewLimits();
    this.#host.limitConnections(connectionLimits(this.#deps.repo.config));
  }

  get id(): PeerId {
    return this.libp2p.peerId;
  }

  /** Starts listening, and dialling bootstrap and peering peers. */
  async start(): Promise<void> {
    await this.libp2p.start();
    await this.#host.live.start();
    this.#reportListenFailures();
    this.keepers.start();
  }

  #reportListenFailures(): void {
    const { listenFailures } = this.#host;
    for (const [address, reason] of listenFailures) this.#deps.onNotice?.(`${address} is not listened on: ${reason}`);
    if (this.#host.isListeningNowhere())
      this.#deps.log.write("swarm2", "error", "the node listens on no address: no other node can reach it");
  }

  /** Stops the swarm; resolves within seconds, whatever peers do. */
  async stop(): Promise<void> {
    this.keepers.stop();
    this.#host.stopBackgroundUpdates();
    await settledWithin(
      STOP_TIMEOUT_MS,
      this.#host.live.stop().then(() => this.libp2p.stop()),
    );
    await this.#datastore.close();
  }

  /** Returns every interface address that is listened on, sorted. */
  listenAddresses(): readonly Multiaddr[] {
    return sorted(this.#host.listening().map(transportOf));
  }

  /** Applies configuration changes to the running host. */
  get live(): LiveHost {
    return this.#host.live;
  }

  /** Traffic counters; undefined with `Swarm.DisableBandwidthMetrics`. */
  get bandwidth(): Bandwidth | undefined {
    return this.#host.bandwidth;
  }

  /** Whether connections through relays are dialled and accepted. */
  get relayEnabled(): boolean {
    return this.#host.relayEnabled;
  }

  /** Returns the addresses that identify sends, without the id, sorted. */
  announcedAddresses(): readonly Multiaddr[] {
    return sorted(this.libp2p.getMultiaddrs().map(transportOf));
  }

  /**
   * Returns the announced addresses in the form that peers dial: as text, with the id at the end.
   */
  ownAddresses(): readonly string[] {
    return this.announcedAddresses().map((address) => withPeer(address, this.id).toString());
  }

  /**
   * Returns the addresses at which peers could or could not reach this node, and the public
   * addresses that no peer has tested.
   */
  reachability(): Pick<Reachability, "reachable" | "unreachable"> & { readonly unknown: readonly Multiaddr[] } {
    const { reachable, unreachable } = this.#host.reachability;
    const tested = new Set([...reachable, ...unreachable].map(String));
    const isUnknown = (address: Multiaddr) => isPublicAddress(address) && !tested.has(address.toString());
    return { reachable, unreachable, unknown: this.announcedAddresses().filter(isUnknown) };
  }

  /**
   * Resolves to the resources that connections use, and to their limits.
   *
   * @throws NodeError if `Swarm.ResourceMgr` is disabled
   */
  async resources(): Promise<SwarmResources> {
    if (resourceLimits(this.#deps.repo.config) === undefined)
      throw failure("FEATURE_OFF", {
        reason: "missing ResourceMgr: make sure the daemon is running with Swarm.ResourceMgr.Enabled",
      });
    return resourcesOf(this.libp2p, this.#host.connectionBounds());
  }

  /** Returns the open connections, sorted by the text of their address. */
  connections(id?: PeerId): readonly Connection[] {
    const open = this.libp2p.getConnections(id).filter(({ status }) => status === "open");
    return open.sort((a, b) => (connectionAddress(a) < connectionAddress(b) ? -1 : 1));
  }

  /** Resolves to the known addresses of every peer that has any, including this node. */
  async addressBook(): Promise<ReadonlyMap<string, readonly Multiaddr[]>> {
    const datastore = new Map([[this.id.toString(), this.announcedAddresses()]]);
    for (const peer of await this.libp2p.peerStore.all()) datastore.set(peer.id.toString(), addressesOf(peer));
    return new Map([...datastore].filter(([, addresses]) => addresses.length > 0));
  }

  /** Resolves to the known addresses of a peer, sorted. */
  async addresses(id: PeerId): Promise<readonly Multiaddr[]> {
    const peer = await this.#known(id);
    return peer === undefined ? [] : addressesOf(peer);
  }

  /**
   * Connects to a peer unless there is a connection, and resolves when the peer is identified.
   * Dials the given addresses, then the known ones; if none are given, finally those that the
   * routing system finds.
   *
   * @throws NodeError `dial to self attempted`, `failed to dial <id>: …`; the error of the routing
   * system
   */
  async connect(id: PeerId, addresses: readonly Multiaddr[] = [], signal?: AbortSignal): Promise<Connection> {
    if (id.equals(this.id)) throw failure("PEER_IS_SELF", { reason: "dial to self attempted" });
    const open = this.connections(id)[0];
    const connection = open ?? (await this.#dial(id, addresses, signal));
    await this.#identify.wait(connection, signal);
    return connection;
  }

  /**
   * Connects to peers in the background. @param onFailure called for each peer that could not be
   * reached
   */
  connectAll(peers: readonly PeerAddress[], onFailure: (id: PeerId, reason: Error) => void): void {
    const signal = AbortSignal.timeout(CONNECT_ALL_TIMEOUT_MS);
    for (const { id, addresses } of byPeer(peers)) {
      if (id.equals(this.id)) continue;
      this.connect(id, addresses, signal).catch((error: Error) => onFailure(id, error));
    }
  }

  async #dial(id: PeerId, given: readonly Multiaddr[], signal: AbortSignal | undefined): Promise<Connection> {
    if (given.length > 0) await this.libp2p.peerStore.merge(id, { multiaddrs: [...given] });
    const tried = new Set<string>();
    const errors: unknown[] = [];
    const find = async () => {
      if (given.length > 0) return [];
      return this.findAddresses(id, signal).catch((error: unknown) => {
        // The known addresses are outdated, and the reason why they cannot be reached is more
        // useful.
        if (tried.size > 0) return [];
        throw error;
      });
    };
    for (const source of [async () => given, () => this.addresses(id), find]) {
      const untried = (await source()).filter((address) => !tried.has(address.toString()));
      if (untried.length === 0) continue;
      for (const address of untried) tried.add(address.toString());
      const full = untried.map((address) => withPeer(address, id));
      try {
        return await this.libp2p.dial(full, signal === undefined ? {} : { signal });
      } catch (error) {
        signal?.throwIfAborted();
        errors.push(error);
      }
    }
    throw dialError(id, errors);
  }

  /** Finds the addresses of a peer with the routing system, and stores them. */
  async findAddresses(id: PeerId, signal?: AbortSignal): Promise<readonly Multiaddr[]> {
    const found = (await this.findPeer?.(id, signal)) ?? [];
    if (found.length > 0) await this.libp2p.peerStore.merge(id, { multiaddrs: [...found] });
    return found;
  }

  /** Like `connect`; the connection is among the last to be trimmed. */
  async connectTagged(id: PeerId, addresses: readonly Multiaddr[], signal: AbortSignal): Promise<void> {
    await this.connect(id, addresses, signal);
    await this.libp2p.peerStore.merge(id, { tags: USER_TAGS });
  }

  /**
   * Closes the connection to one address of a peer, or all connections to it.
   *
   * @throws NodeError `not connected`, `conn not found`
   */
  async disconnect(id: PeerId, address: Multiaddr | undefined): Promise<void> {
    const open = this.connections(id);
    if (address === undefined) {
      if (open.length === 0) throw failure("NOT_CONNECTED", { reason: "not connected" });
      await Promise.all(open.map((each) => this.#close(each)));
      return;
    }
    const connection = open.find((each) => transportOf(each.remoteAddr).equals(address));
    if (connection === undefined) throw failure("NOT_CONNECTED", { reason: "conn not found" });
    await this.#close(connection);
  }

  /** Waits for identify first, so that a new peer can report where it can be found again. */
  async #close(connection: Connection): Promise<void> {
    await settledWithin(MAX_IDENTIFY_WAIT_MS, this.#identify.wait(connection));
    await connection.close().catch((error: Error) => connection.abort(error));
  }

  /** Resolves to what is known about a peer. */
  async peerInfo(id: PeerId): Promise<PeerInfo> {
    const peer = await this.#known(id);
    const metadata = (key: string) => Buffer.from(peer?.metadata.get(key) ?? []).toString();
    return {
      id,
      publicKey: peer?.id.publicKey ?? id.publicKey,
      addresses: peer === undefined ? [] : addressesOf(peer),
      agentVersion: metadata("AgentVersion"),
      protocolVersion: metadata("ProtocolVersion"),
      protocols: [...(peer?.protocols ?? [])].sort(),
    };
  }

  #known(id: PeerId): Promise<Peer | undefined> {
    return this.libp2p.peerStore.get(id).catch((error: Error) => {
      if (error.name === "NotFoundError") return undefined;
      throw error;
    });
  }
}

/**
 * Returns the address of a connection without the id, which distinguishes the connections of a
 * peer.
 */
export const connectionAddress = ({ remoteAddr }: Connection): string => transportOf(remoteAddr).toString();

/** Whether an address begins with a public IP address. */
function isPublicAddress(address: Multiaddr): boolean {
  const [first] = address.getComponents();
  return /^ip[46]$/.test(first?.name ?? "") && isPublic(first?.value ?? "");
}

function unique(addresses: readonly Multiaddr[]): readonly Multiaddr[] {
  return [...new Map(addresses.map((address) => [address.toString(), address])).values()];
}

const sorted = (addresses: readonly Multiaddr[]): readonly Multiaddr[] =>
  [...unique(addresses)].sort((a, b) => (a.toString() < b.toString() ? -1 : 1));

const addressesOf = ({ addresses }: Peer): readonly Multiaddr[] =>
  sorted(addresses.map(({ multiaddr }) => transportOf(multiaddr)));
