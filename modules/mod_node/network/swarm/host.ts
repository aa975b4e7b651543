/** libp2p in the way that the configuration says. */
import { type AutoNATComponents, autoNAT } from "@libp2p/autonat";
import { circuitRelayServer } from "@libp2p/circuit-relay-v2";
import { dcutr } from "@libp2p/dcutr";
import { identify, identifyPush } from "@libp2p/identify";
import { type ComponentLogger, FaultTolerance, type Logger, type Transport } from "@libp2p/interface";
import { mdns } from "@libp2p/mdns";
import type { PingComponents } from "@libp2p/ping";
import { preSharedKey } from "@libp2p/pnet";
import { uPnPNAT } from "@libp2p/upnp-nat";
import { createLibp2p, type Libp2p, type ServiceFactoryMap } from "libp2p";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import { forceNewDials, limitAutoNat } from "./autonat.ts";
import { Bandwidth } from "./bandwidth.ts";
import { limitStoredAddresses } from "./bounded_addresses.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { withAddressInErrors } from "./dial_failure.ts";
import { addressMatcher, type Filters } from "./filters.ts";
import { copyMiddlewareLists } from "./middleware.ts";
import { type Multiaddr, parseMultiaddr, transportOf } from "./multiaddr.ts";
import type { PeerDatastore } from "./peer_datastore.ts";
import { PingService } from "./ping.ts";
import { encodeSwarmKey, readSwarmKey } from "./private_network.ts";
import { encryptersOf, muxersOf, quicTransport, type TransportComponents, transportsOf } from "./transports.ts";

export interface HostDeps {
  readonly repo: Pick<Repo, "path" | "config" | "identity">;
  readonly datastore: PeerDatastore;
  readonly filters: Filters;
  readonly limits: ConnectionLimits | undefined;
  /** As the node calls itself among peers. */
  readonly agent: string;
  /** Further services of libp2p. */
  readonly services: ServiceFactoryMap;
  /** Told of peers of the local network. */
  readonly onDiscovered: (peer: { readonly id: Libp2p["peerId"]; readonly multiaddrs: Multiaddr[] }) => void;
}

export interface Host {
  readonly libp2p: Libp2p;
  readonly ping: PingService;
  /** Undefined when nothing is counted (`Swarm.DisableBandwidthMetrics`). */
  readonly bandwidth: Bandwidth | undefined;
  /** Connections through relays are dialled and taken. */
  readonly relayEnabled: boolean;
  /** What is not listened on, and why not. */
  readonly listenFailures: Map<string, string>;
  /** Something should be listened on, and nothing is. */
  listensNowhere(): boolean;
  /** Every address that is listened on. */
  listening(): readonly Multiaddr[];
  /** Tells others every address that is listened on, whether somebody has tried it from outside or not. */
  announceAll(): void;
  /** Tells nobody anything any more: to be called before libp2p stops. */
  stopBackgroundUpdates(): void;
}

/** Inbound connections of one address in a second, and those that are being agreed upon. */
const burst = { perSecond: 64, pending: 256 };
/** In multiples of the most connections that are kept: what comes above it is turned away at once. */
const ceiling = 4;
/** Dials that wait; those that somebody asked for go first. Of the library's 500 a few answers of a liar take them all. */
const waitingDials = 8192;
/** Whoever is a relay chose to be one: as in the reference, it carries as much as it is given. The library's 15 are few. */
const relaying = { reservations: { maxReservations: 128, applyDefaultLimit: false } };
const year = 365 * 24 * 3600 * 1000;

const silence: Logger = Object.assign(() => undefined, {
  error: () => undefined,
  trace: () => undefined,
  enabled: false,
  newScope: () => silence,
});

/** Made, and not started. @throws NodeError of a configuration that says what cannot be */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the settings of libp2p, one by one, in the order of its own documentation
export async function createHost(parts: HostDeps): Promise<Host> {
  const { repo, datastore, filters, limits, agent, onDiscovered } = parts;
  const { config, identity } = repo;
  const psk = await readSwarmKey(repo.path);
  const relayEnabled = config.value("Swarm.Transports.Network.Relay") ?? !config.value("Swarm.DisableRelay");
  const listenFailures = new Map<string, string>();
  const quic = await quicTransport(config, psk !== undefined);
  const transports = transportsOf(config, relayEnabled, quic.make);
  const listen = listenAddresses(parts, quic.missing, listenFailures);
  let ping: PingService | undefined;
  let bandwidth: Bandwidth | undefined;
  let components: AutoNATComponents | undefined;
  const limit = limits === undefined ? Number.MAX_SAFE_INTEGER : limits.high * ceiling;
  const libp2p = await createLibp2p({
    start: false,
    privateKey: identity.privateKey,
    nodeInfo: { userAgent: agent },
    datastore: datastore,
    // Formatting what nobody reads costs more than a small block does.
    ...(process.env.DEBUG === undefined ? { logger: quiet } : {}),
    addresses: {
      listen: listen.map(String),
      announce: [...(config.value("Addresses.Announce") ?? [])],
      announceFilter: announced(config.value("Addresses.NoAnnounce") ?? []),
    },
    transports: transports.map((make) => (own: TransportComponents) => watched(make(own), listenFailures)),
    transportManager: { faultTolerance: FaultTolerance.NO_FATAL },
    connectionEncrypters: encryptersOf(config),
    streamMuxers: muxersOf(config),
    ...(psk === undefined ? {} : { connectionProtector: preSharedKey({ psk: encodeSwarmKey(psk) }) }),
    connectionGater: {
      denyDialMultiaddr: (address) => filters.blocksDial(address),
      denyInboundConnection: ({ remoteAddr }) => filters.blocks(remoteAddr),
    },
    connectionManager: {
      maxConnections: limit,
      inboundConnectionThreshold: burst.perSecond,
      maxIncomingPendingConnections: burst.pending,
      maxDialQueueLength: waitingDials,
    },
    // Streams for a ping on each connection every few seconds; the multiplexer finds out about dead ones.
    connectionMonitor: { enabled: false },
    peerStore: { maxAddressAge: 24 * 3600 * 1000, maxPeerAge: 7 * 24 * 3600 * 1000 },
    ...(config.value("Swarm.DisableBandwidthMetrics")
      ? {}
      : { metrics: ({ events }) => (bandwidth = new Bandwidth(events)) }),
    services: {
      identify: identify(),
      identifyPush: identifyPush(),
      ping: (own: PingComponents) => (ping = new PingService(own)),
      autoNAT: (own: AutoNATComponents) => {
        components = own;
        return autoNAT()(forceNewDials(own));
      },
      ...(relayEnabled ? { dcutr: dcutr() } : {}),
      ...(config.value("Swarm.EnableRelayHop") ? { relay: circuitRelayServer(relaying) } : {}),
      ...(config.value("Swarm.DisableNatPortMap") ? {} : { portMapping: uPnPNAT() }),
      ...(config.value("Discovery.MDNS.Enabled") ? { localNetwork: localNetwork(parts, onDiscovered) } : {}),
      ...parts.services,
    },
  });
  const own = () => components as unknown as AutoNATComponents;
  copyMiddlewareLists(own().registrar);
  limitStoredAddresses(libp2p.peerStore);
  limitAutoNat(libp2p, config);
  for (const address of listen) {
    if (own().transportManager.listenTransportForMultiaddr(address) === undefined) {
      listenFailures.set(String(address), "no transport that is on takes it");
    }
  }
  return {
    libp2p,
    ping: ping as unknown as PingService,
    bandwidth,
    relayEnabled,
    listenFailures,
    listensNowhere: () => listenFailures.size > 0 && listen.every((address) => listenFailures.has(String(address))),
    listening: () => own().transportManager.getAddrs(),
    announceAll() {
      const { addressManager, transportManager } = own();
      for (const address of transportManager.getAddrs()) {
        addressManager.confirmObservedAddr(address, { type: "transport", ttl: year });
      }
    },
    stopBackgroundUpdates() {
      silenced(own().addressManager, "_updatePeerStoreAddresses");
      silenced(libp2p.services.identifyPush, "_push");
    },
  };
}

/**
 * What libp2p does a second after an address or a protocol has gone, also when all of them go because it stops: it would
 * write into a store that is closed, and keep the process for two seconds.
 */
function silenced(component: object, method: string): void {
  const late: unknown = Reflect.get(component, method);
  if (typeof late !== "function") return;
  if ("stop" in late && typeof late.stop === "function") late.stop();
  Reflect.set(component, method, () => undefined);
}

const quiet: ComponentLogger = { forComponent: () => silence };

function listenAddresses(
  { repo: { config } }: HostDeps,
  quicMissing: string | undefined,
  listenFailures: Map<string, string>,
): Multiaddr[] {
  const texts = config.value("Addresses.Swarm") ?? [];
  let addresses: Multiaddr[];
  try {
    addresses = texts.map(parseMultiaddr);
  } catch (error) {
    throw new NodeError(`failure to parse config.Addresses.Swarm: [${texts.join(" ")}]`, { cause: error });
  }
  if (quicMissing !== undefined && config.value("Swarm.Transports.Network.QUIC") === true)
    listenFailures.set("QUIC", quicMissing);
  if (config.value("Swarm.EnableAutoRelay")) addresses.push(parseMultiaddr("/p2p-circuit"));
  return addresses.filter((address) => {
    const names = address.getComponents().map(({ name }) => name);
    if (names.includes("quic")) listenFailures.set(String(address), "nothing here speaks this draft of QUIC");
    else if (names.includes("quic-v1") && quicMissing !== undefined) listenFailures.set(String(address), quicMissing);
    else return true;
    return false;
  });
}

/** @throws NodeError of an entry that is no address */
function announced(hidden: readonly string[]): (addresses: Multiaddr[]) => Multiaddr[] {
  const isHidden = addressMatcher(hidden);
  return (addresses) => addresses.filter((address) => !isHidden(transportOf(address)));
}

/** Notes which addresses cannot be listened on: libp2p goes on without a word. */
function watched(transport: Transport, listenFailures: Map<string, string>): Transport {
  const { createListener } = transport;
  transport.createListener = (options) => {
    const listener = createListener.call(transport, options);
    const { listen } = listener;
    listener.listen = async (address) => {
      try {
        await listen.call(listener, address);
      } catch (error) {
        listenFailures.set(String(address), (error as Error).message);
        throw error;
      }
    };
    return listener;
  };
  return withAddressInErrors(transport);
}

const usualInterval = 5;

function localNetwork({ repo: { config } }: HostDeps, found: HostDeps["onDiscovered"]) {
  const seconds = config.value("Discovery.MDNS.Interval") || usualInterval;
  return (components: Parameters<ReturnType<typeof mdns>>[0]) => {
    const discovery = mdns({ interval: seconds * 1000 })(components);
    discovery.addEventListener("peer", ({ detail }) => found(detail));
    return discovery;
  };
}
