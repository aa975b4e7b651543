/** Creates libp2p according to the configuration. */
import { autoNAT } from "@libp2p/autonat";
import { identify, identifyPush } from "@libp2p/identify";
import { FaultTolerance, type Transport } from "@libp2p/interface";
import type { PingComponents } from "@libp2p/ping";
import { preSharedKey } from "@libp2p/pnet";
import { createLibp2p, type Libp2p, type Libp2pOptions, type ServiceFactoryMap } from "libp2p";
import type { Repo } from "../../storage/repo/repo.ts";
import { Allowlist } from "./allowlist.ts";
import { Bandwidth } from "./bandwidth.ts";
import { type ConnectionLimits, maxConnections, resourceLimits } from "./connection_limits.ts";
import type { Filters } from "./filters.ts";
import { announcedAddresses, listenAddresses, recordListening } from "./listen_addresses.ts";
import type { ListenRecord } from "./listening.ts";
import { Announced, type HostComponents, LiveHost, relayEnabledIn } from "./live_host.ts";
import type { Multiaddr } from "./multiaddr.ts";
import { forceNewDials } from "./patches/autonat/force_new_dials.ts";
import { canStopPush, stopPush } from "./patches/identify/stop_push.ts";
import { copyMiddlewareLists } from "./patches/libp2p/copy_middleware.ts";
import { canStopAddressUpdates, stopAddressUpdates } from "./patches/libp2p/stop_address_updates.ts";
import type { PatchNotices } from "./patches/notices.ts";
import { limitStoredAddresses } from "./patches/peer_store/limit_addresses.ts";
import type { PeerDatastore } from "./peer_datastore.ts";
import { PingService } from "./ping.ts";
import { encodeSwarmKey, readSwarmKey } from "./private_network.ts";
import { quicTransport } from "./quic.ts";
import { Reachability } from "./reachability.ts";
import type { ConnectionBounds } from "./resources.ts";
import { silentLogger } from "./silent_logger.ts";
import { encryptersOf, muxersOf, type TransportComponents, transportsOf } from "./transports.ts";

export interface HostDeps {
  readonly repo: Pick<Repo, "path" | "config" | "identity">;
  readonly datastore: PeerDatastore;
  readonly filters: Filters;
  readonly limits: ConnectionLimits | undefined;
  readonly patches: PatchNotices;
  /** The agent version that identify sends. */
  readonly agent: string;
  /** Further services of libp2p. */
  readonly services: ServiceFactoryMap;
  /** Called for each peer that mDNS finds on the local network. */
  readonly onDiscovered: (peer: { readonly id: Libp2p["peerId"]; readonly multiaddrs: Multiaddr[] }) => void;
}

export interface Host {
  readonly libp2p: Libp2p;
  readonly ping: PingService;
  /** Traffic counters; undefined with `Swarm.DisableBandwidthMetrics`. */
  readonly bandwidth: Bandwidth | undefined;
  /** Whether connections through relays are dialled and accepted. */
  readonly relayEnabled: boolean;
  /** Applies configuration changes to the running host. */
  readonly live: LiveHost;
  /** Configured addresses that are not listened on, each with the reason. */
  readonly listenFailures: Map<string, string>;
  /** Whether addresses are configured, but none of them is listened on. */
  isListeningNowhere(): boolean;
  /** Returns every address that is listened on. */
  listening(): readonly Multiaddr[];
  /**
   * Announces every address that is listened on, whether or not a peer has confirmed that it is
   * reachable.
   */
  announceAll(): void;
  /** The reachability of this node, according to AutoNAT. */
  readonly reachability: Reachability;
  /** Returns the limits above which connections are refused. */
  connectionBounds(): ConnectionBounds;
  /**
   * Refuses connections above a multiple of these limits, or above those of the configuration, from
   * now on.
   */
  limitConnections(limits: ConnectionLimits | undefined): void;
  /** Stops announcing and storing; must be called before libp2p stops. */
  stopBackgroundUpdates(): void;
}

/** Maximum number of inbound connections per address and second. */
const MAX_INBOUND_PER_SECOND = 64;
const BOUNDS = {
  /**
   * Maximum number of inbound connections in negotiation, each of which may take ten seconds. One
   * address cannot open that many in this time, so it cannot exclude others.
   */
  pendingInbound: 1024,
  /**
   * Maximum number of queued dials; requested dials come first. The library's limit of 500 could be
   * filled by a few forged responses.
   */
  queuedDials: 8192,
};
/**
 * Milliseconds that a peer may take to identify itself, because a peer on a busy machine may be
 * slow. The library's limit is five seconds.
 */
const IDENTIFY_TIMEOUT_MS = 30_000;
const YEAR_MS = 365 * 24 * 3600 * 1000;

/** Private parts of libp2p, captured by services during its creation. */
interface Captured {
  readonly reachability: Reachability;
  ping?: PingService;
  bandwidth?: Bandwidth;
  components?: HostComponents;
}

/** Creates libp2p without starting it. @throws NodeError for an invalid configuration */
export async function createHost(deps: HostDeps): Promise<Host> {
  const { repo, patches } = deps;
  const { config } = repo;
  const psk = await readSwarmKey(repo.path);
  const record: ListenRecord = { opened: new Map(), failures: new Map() };
  const { failures: listenFailures } = record;
  const transports = new Map<string, Transport>();
  const announced = new Announced(config.value("Addresses.NoAnnounce") ?? []);
  const quic = await quicTransport(config, psk !== undefined, patches);
  const listen = listenAddresses(config, quic.missing, listenFailures);
  const captured: Captured = { reachability: new Reachability() };
  const libp2p = await createLibp2p({
    start: false,
    ...connectionOptions(deps, captured),
    addresses: {
      listen: listen.map(String),
      ...announcedAddresses(config),
      announceFilter: announced.filter,
    },
    transports: [...transportsOf(config, relayEnabledIn(config), quic.make)].map(([name, make]) => {
      return (components: TransportComponents) =>
        remembered(transports, name, recordListening(make(components), record));
    }),
    ...(psk === undefined ? {} : { connectionProtector: preSharedKey({ psk: encodeSwarmKey(psk) }) }),
    services: servicesOf(deps, captured),
  });
  // The service factories have run by now.
  const { ping, components, bandwidth } = captured as Captured & Required<Pick<Captured, "ping" | "components">>;
  const { addressManager, registrar, transportManager, connectionManager } = components;
  copyMiddlewareLists(registrar, patches);
  limitStoredAddresses(libp2p.peerStore, patches);
  const stopping = backgroundUpdates(libp2p.services, components, patches);
  const live = new LiveHost({
    ...deps,
    libp2p,
    components,
    config,
    isPrivate: psk !== undefined,
    listen,
    record,
    transports,
    prepare: (transport) => recordListening(transport, record),
    announced,
  });
  return {
    libp2p,
    ping,
    get bandwidth() {
      return config.value("Swarm.DisableBandwidthMetrics") ? undefined : bandwidth;
    },
    get relayEnabled() {
      return relayEnabledIn(config);
    },
    live,
    listenFailures,
    isListeningNowhere: () => listenFailures.size > 0 && record.opened.size === 0 && listen.length > 0,
    listening: () => transportManager.getAddrs(),
    reachability: captured.reachability,
    connectionBounds: () => ({ ...resourceLimits(config), ...BOUNDS, open: connectionManager.getMaxConnections() }),
    announceAll() {
      for (const address of transportManager.getAddrs()) {
        addressManager.confirmObservedAddr(address, { type: "transport", ttl: YEAR_MS });
      }
    },
    limitConnections: (changed) => connectionManager.setMaxConnections(maxConnections(changed, resourceLimits(config))),
    stopBackgroundUpdates() {
      for (const stop of stopping) if (stop !== false) stop();
    },
  };
}

interface BackgroundServices {
  readonly identifyPush: object;
}

/** Returns functions that stop the background updates, where that is possible. */
const backgroundUpdates = (services: BackgroundServices, { addressManager }: HostComponents, patches: PatchNotices) => [
  canStopAddressUpdates(addressManager, patches) && (() => stopAddressUpdates(addressManager)),
  canStopPush(services.identifyPush, patches) && (() => stopPush(services.identifyPush)),
];

function remembered<T>(all: Map<string, T>, name: string, one: T): T {
  all.set(name, one);
  return one;
}

/** Returns the options for establishing, securing, limiting and counting connections. */
function connectionOptions(deps: HostDeps, captured: Captured): Libp2pOptions {
  const { repo, datastore, filters, limits, agent, patches } = deps;
  const { config, identity } = repo;
  const allowed = new Allowlist(config.value("Swarm.ResourceMgr.Allowlist") ?? []);
  const isFull = () => {
    const manager = captured.components?.connectionManager;
    return manager !== undefined && manager.getConnections().length >= manager.getMaxConnections();
  };
  return {
    privateKey: identity.privateKey,
    nodeInfo: { userAgent: agent },
    datastore,
    // Formatting log messages that nobody reads costs more than sending a small block.
    ...(process.env.DEBUG === undefined ? { logger: silentLogger } : {}),
    transportManager: { faultTolerance: FaultTolerance.NO_FATAL },
    connectionEncrypters: encryptersOf(config, patches),
    streamMuxers: muxersOf(config, patches),
    connectionGater: {
      denyDialMultiaddr: (address) => filters.blocksDial(address),
      denyInboundConnection: ({ remoteAddr }) => filters.blocks(remoteAddr),
      // With an allowlist, the library accepts every connection without an address of its own, and
      // only checks addresses.
      denyInboundRelayedConnection: () => !allowed.isEmpty && isFull(),
      denyInboundEncryptedConnection: (peer, { remoteAddr }) =>
        !allowed.isEmpty && isFull() && !allowed.has(remoteAddr, peer),
    },
    connectionManager: {
      allow: [...allowed.ranges],
      maxConnections: maxConnections(limits, resourceLimits(config)),
      inboundConnectionThreshold: MAX_INBOUND_PER_SECOND,
      maxIncomingPendingConnections: BOUNDS.pendingInbound,
      maxDialQueueLength: BOUNDS.queuedDials,
    },
    // The monitor would open a stream for a ping on each connection every few seconds; multiplexers
    // detect dead connections themselves.
    connectionMonitor: { enabled: false },
    peerStore: { maxAddressAge: 24 * 3600 * 1000, maxPeerAge: 7 * 24 * 3600 * 1000 },
    metrics: ({ events }) =>
      (captured.bandwidth = new Bandwidth(events, () => !config.value("Swarm.DisableBandwidthMetrics"))),
  };
}

function servicesOf(deps: HostDeps, captured: Captured) {
  return {
    identify: identify({ timeout: IDENTIFY_TIMEOUT_MS }),
    identifyPush: identifyPush({ timeout: IDENTIFY_TIMEOUT_MS }),
    ping: (components: PingComponents) => (captured.ping = new PingService(components)),
    autoNAT: (components: HostComponents) => {
      captured.components = components;
      return autoNAT()(captured.reachability.recordFrom(forceNewDials(components, deps.patches)));
    },
    ...deps.services,
  };
}
