/** The node among others: who is connected, from where, and what may be dialled. */
import type { Connection, Peer } from "@libp2p/interface";
import type { Libp2p, ServiceFactoryMap } from "libp2p";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { PublicKey } from "../../storage/repo/identity.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { agentVersion } from "../../util/agent_version.ts";
import { settledWithin } from "../../util/async/settled_within.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { autoNatProtocol } from "./autonat.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { bootstrapAddresses } from "./bootstrap_list.ts";
import { ConnectionTrimmer, connectionLimits } from "./connection_limits.ts";
import { dialError } from "./dial_failure.ts";
import { Filters } from "./filters.ts";
import { createHost, type Host } from "./host.ts";
import { IdentifyWaiter } from "./identify_waiter.ts";
import { byPeer, type Multiaddr, type PeerAddress, parseMultiaddr, transportOf, withPeer } from "./multiaddr.ts";
import { PatchNotices } from "./patches/notices.ts";
import { PeerDatastore, peerKey } from "./peer_datastore.ts";
import { Bootstrapper, Peering } from "./peering.ts";
import type { PingService } from "./ping.ts";

export interface SwarmDeps {
  readonly repo: Pick<Repo, "path" | "config" | "identity">;
  readonly metadata: MetadataStore;
  readonly log: NodeLog;
  /** Further services of libp2p. */
  readonly services?: ServiceFactoryMap;
  /** Told in a sentence of what is not as the configuration says, while the rest of it is. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  readonly patches?: PatchNotices;
}

/** What a peer has told of itself; empty where it has told nothing. */
export interface PeerInfo {
  readonly id: PeerId;
  readonly publicKey: PublicKey | undefined;
  /** Without its id, in order. */
  readonly addresses: readonly Multiaddr[];
  readonly agentVersion: string;
  readonly protocolVersion: string;
  /** In order. */
  readonly protocols: readonly string[];
}

/** Where a peer is of which no address is known. Rejects with what the caller is to be told. */
export type FindPeer = (id: PeerId, signal?: AbortSignal) => Promise<readonly Multiaddr[]>;

/** Milliseconds that libp2p has to end in, when all that runs over it has. */
const stopWithin = 1500;
/** Milliseconds that the dialling of those who are to be met may take. */
const meetWithin = 60_000;
/** What somebody asked to be connected to is worth, in the choice of what to close. */
const askedFor = { "user-connect": { value: 100 } };

/** @throws NodeError of a configuration that says what cannot be */
export async function openSwarm(parts: SwarmDeps): Promise<Swarm> {
  const { config, identity } = parts.repo;
  const filters = filtersOf(config.value("Swarm.AddrFilters") ?? []);
  const limits = connectionLimits(config);
  const connected = new Set<string>();
  const datastore = await PeerDatastore.open(parts.metadata, { own: peerKey(identity.peerId), staying: connected });
  const found: { peers?: Swarm } = {};
  const host = await createHost({
    repo: parts.repo,
    datastore,
    filters,
    limits,
    agent: agentVersion,
    patches: parts.patches ?? new PatchNotices(parts.onNotice),
    services: parts.services ?? {},
    onDiscovered: ({ id, multiaddrs }) => void found.peers?.connect(id, multiaddrs).catch(() => undefined),
  });
  host.libp2p.addEventListener("peer:connect", ({ detail }) => connected.add(peerKey(detail)));
  host.libp2p.addEventListener("peer:disconnect", ({ detail }) => connected.delete(peerKey(detail)));
  found.peers = new Swarm(parts, host, datastore, filters);
  return found.peers;
}

function filtersOf(texts: readonly string[]): Filters {
  const filters = new Filters();
  for (const text of texts) {
    try {
      filters.add(text);
    } catch (error) {
      throw new NodeError(`incorrectly formatted address filter in config: ${text}`, { cause: error });
    }
  }
  return filters;
}

export class Swarm {
  readonly libp2p: Libp2p;
  readonly ping: PingService;
  /** Undefined when nothing is counted. */
  readonly bandwidth: Bandwidth | undefined;
  /** Neither dialled nor let in. */
  readonly filters: Filters;
  /** Set by the network; without it only peers with known addresses are dialled. */
  findPeer: FindPeer | undefined;
  readonly #host: Host;
  readonly #datastore: PeerDatastore;
  readonly #deps: SwarmDeps;
  readonly #identify: IdentifyWaiter;
  readonly #dialers: readonly { start(): void; stop(): void }[];

  constructor(parts: SwarmDeps, host: Host, datastore: PeerDatastore, filters: Filters) {
    const { libp2p, ping, bandwidth } = host;
    const { log, repo } = parts;
    const { config } = repo;
    this.libp2p = libp2p;
    this.ping = ping;
    this.bandwidth = bandwidth;
    this.filters = filters;
    this.#host = host;
    this.#datastore = datastore;
    this.#deps = parts;
    this.#identify = new IdentifyWaiter(libp2p);
    const peering = new Peering(libp2p, peersToKeep(config.value("Peering.Peers") ?? []), log);
    const limits = connectionLimits(config);
    this.#dialers = [
      peering,
      new Bootstrapper(libp2p, bootstrapAddresses(config), log),
      ...(limits === undefined ? [] : [new ConnectionTrimmer(libp2p, limits, (id) => peering.protects(id))]),
    ];
    libp2p.addEventListener("transport:listening", () => host.announceAll());
  }

  get id(): PeerId {
    return this.libp2p.peerId;
  }

  /** Listens and begins to dial. */
  async start(): Promise<void> {
    await this.libp2p.start();
    if (this.#deps.repo.config.value("AutoNAT.ServiceMode") === "disabled") await this.libp2p.unhandle(autoNatProtocol);
    this.#reportListenFailures();
    for (const keeper of this.#dialers) keeper.start();
  }

  #reportListenFailures(): void {
    const { listenFailures } = this.#host;
    for (const [address, reason] of listenFailures) this.#deps.onNotice?.(`${address} is not listened on: ${reason}`);
    if (this.#host.listensNowhere())
      this.#deps.log.write("swarm2", "error", "nothing is listened on: no other node can reach this one");
  }

  /** Ends within seconds, whatever the others do. */
  async stop(): Promise<void> {
    for (const keeper of this.#dialers) keeper.stop();
    this.#host.stopBackgroundUpdates();
    await settledWithin(stopWithin, Promise.resolve(this.libp2p.stop()));
    await this.#datastore.close();
  }

  /** Every interface address that is listened on, in order. */
  listenAddresses(): readonly Multiaddr[] {
    return inOrder(this.#host.listening().map(transportOf));
  }

  /** Connections through relays are taken, too. */
  get relayEnabled(): boolean {
    return this.#host.relayEnabled;
  }

  /** What others are told, without the id, in order. */
  announcedAddresses(): readonly Multiaddr[] {
    return inOrder(this.libp2p.getMultiaddrs().map(transportOf));
  }

  /** The same as others are to dial them: as text, with the id at the end of each. */
  ownAddresses(): readonly string[] {
    return this.announcedAddresses().map((address) => withPeer(address, this.id).toString());
  }

  /** Open ones, by the text of their address. */
  connections(id?: PeerId): readonly Connection[] {
    const open = this.libp2p.getConnections(id).filter(({ status }) => status === "open");
    return open.sort((a, b) => (connectionAddress(a) < connectionAddress(b) ? -1 : 1));
  }

  /** Known addresses of every peer that has any, the node itself among them. */
  async addressBook(): Promise<ReadonlyMap<string, readonly Multiaddr[]>> {
    const datastore = new Map([[this.id.toString(), this.announcedAddresses()]]);
    for (const peer of await this.libp2p.peerStore.all()) datastore.set(peer.id.toString(), addressesOf(peer));
    return new Map([...datastore].filter(([, addresses]) => addresses.length > 0));
  }

  /** In order; none when nothing is known. */
  async addresses(id: PeerId): Promise<readonly Multiaddr[]> {
    const peer = await this.#known(id);
    return peer === undefined ? [] : addressesOf(peer);
  }

  /**
   * Connects to a peer unless there is a connection, and resolves when it has told what it speaks. Dialled are the
   * given addresses, those that are known, and where there is none those that routing finds.
   *
   * @throws NodeError `dial to self attempted`, `failed to dial <id>: …`; whatever routing says
   */
  async connect(id: PeerId, addresses: readonly Multiaddr[] = [], signal?: AbortSignal): Promise<Connection> {
    if (id.equals(this.id)) throw new NodeError("dial to self attempted");
    const open = this.connections(id)[0];
    const connection = open ?? (await this.#dial(id, addresses, signal));
    await this.#identify.wait(connection, signal);
    return connection;
  }

  /** Begins to connect to others, and does not wait for it; `missed` hears of everyone who is not reached. */
  connectAll(others: readonly PeerAddress[], missed: (id: PeerId, reason: Error) => void): void {
    const signal = AbortSignal.timeout(meetWithin);
    for (const { id, addresses } of byPeer(others)) {
      if (id.equals(this.id)) continue;
      this.connect(id, addresses, signal).catch((error: Error) => missed(id, error));
    }
  }

  async #dial(id: PeerId, given: readonly Multiaddr[], signal: AbortSignal | undefined): Promise<Connection> {
    if (given.length > 0) await this.libp2p.peerStore.merge(id, { multiaddrs: [...given] });
    let known = unique([...given, ...(await this.addresses(id))]);
    if (known.length === 0) known = await this.findAddresses(id, signal);
    try {
      const whole = known.map((address) => withPeer(address, id));
      return await this.libp2p.dial(whole.length === 0 ? id : whole, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw dialError(id, error);
    }
  }

  /** Asks routing, and remembers what it says. */
  async findAddresses(id: PeerId, signal?: AbortSignal): Promise<readonly Multiaddr[]> {
    const found = (await this.findPeer?.(id, signal)) ?? [];
    if (found.length > 0) await this.libp2p.peerStore.merge(id, { multiaddrs: [...found] });
    return found;
  }

  /** As `connect`; the connection is one of the last to be closed when there are too many. */
  async connectTagged(id: PeerId, addresses: readonly Multiaddr[], signal: AbortSignal): Promise<void> {
    await this.connect(id, addresses, signal);
    await this.libp2p.peerStore.merge(id, { tags: askedFor });
  }

  /**
   * Closes the connection to one address of a peer, or all of them.
   *
   * @throws NodeError `not connected`, `conn not found`
   */
  async disconnect(id: PeerId, address: Multiaddr | undefined): Promise<void> {
    const open = this.connections(id);
    if (address === undefined) {
      if (open.length === 0) throw new NodeError("not connected");
      await Promise.all(open.map(end));
      return;
    }
    const connection = open.find((each) => transportOf(each.remoteAddr).equals(address));
    if (connection === undefined) throw new NodeError("conn not found");
    await end(connection);
  }

  /** What is known of a peer. */
  async peerInfo(id: PeerId): Promise<PeerInfo> {
    const peer = await this.#known(id);
    const told = (key: string) => Buffer.from(peer?.metadata.get(key) ?? []).toString();
    return {
      id,
      publicKey: peer?.id.publicKey ?? id.publicKey,
      addresses: peer === undefined ? [] : addressesOf(peer),
      agentVersion: told("AgentVersion"),
      protocolVersion: told("ProtocolVersion"),
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

/** Connections are told apart by it. */
export const connectionAddress = ({ remoteAddr }: Connection): string => transportOf(remoteAddr).toString();

async function end(connection: Connection): Promise<void> {
  await connection.close().catch((error: Error) => connection.abort(error));
}

function peersToKeep(peers: readonly { readonly ID: string; readonly Addrs: readonly string[] }[]) {
  return peers.map(({ ID, Addrs }) => ({
    id: parsePeerId(ID),
    addresses: Addrs.map((text) => transportOf(parseMultiaddr(text))),
  }));
}

function unique(addresses: readonly Multiaddr[]): readonly Multiaddr[] {
  return [...new Map(addresses.map((address) => [address.toString(), address])).values()];
}

const inOrder = (addresses: readonly Multiaddr[]): readonly Multiaddr[] =>
  [...unique(addresses)].sort((a, b) => (a.toString() < b.toString() ? -1 : 1));

const addressesOf = ({ addresses }: Peer): readonly Multiaddr[] =>
  inOrder(addresses.map(({ multiaddr }) => transportOf(multiaddr)));
