/** libp2p in the way that the configuration says. */
import { type AutoNATComponents, autoNAT } from "@libp2p/autonat";
import { circuitRelayServer, circuitRelayTransport } from "@libp2p/circuit-relay-v2";
import { dcutr } from "@libp2p/dcutr";
import { identify, identifyPush } from "@libp2p/identify";
import {
  type ComponentLogger,
  type ConnectionEncrypter,
  FaultTolerance,
  type Logger,
  type StreamMuxerFactory,
  type Transport,
} from "@libp2p/interface";
import { mdns } from "@libp2p/mdns";
import { noise } from "@libp2p/noise";
import type { PingComponents } from "@libp2p/ping";
import { preSharedKey } from "@libp2p/pnet";
import { tcp } from "@libp2p/tcp";
import { tls } from "@libp2p/tls";
import { uPnPNAT } from "@libp2p/upnp-nat";
import { webSockets } from "@libp2p/websockets";
import { yamux } from "@libp2p/yamux";
import { createLibp2p, type Libp2p, type ServiceFactoryMap } from "libp2p";
import { NodeError } from "../errors.ts";
import type { Repo } from "../repo/repo.ts";
import { limitAutoNat } from "./autonat.ts";
import { Bandwidth } from "./bandwidth.ts";
import { namingAddresses } from "./dial_failure.ts";
import { addressMatcher, type Filters } from "./filters.ts";
import type { Limits } from "./limits.ts";
import { listForEachStream } from "./middleware.ts";
import { type Multiaddr, parseMultiaddr, transportOf } from "./multiaddr.ts";
import { oldMultiplexer } from "./old_multiplexer.ts";
import type { PeerBook } from "./peer_book.ts";
import { PingService } from "./ping.ts";
import { encodeSwarmKey, readSwarmKey } from "./private_network.ts";

export interface HostParts {
  readonly repo: Pick<Repo, "path" | "config" | "identity">;
  readonly book: PeerBook;
  readonly filters: Filters;
  readonly limits: Limits | undefined;
  /** As the node calls itself among peers. */
  readonly agent: string;
  /** Further services of libp2p. */
  readonly services: ServiceFactoryMap;
  /** Told of peers of the local network. */
  readonly found: (peer: { readonly id: Libp2p["peerId"]; readonly multiaddrs: Multiaddr[] }) => void;
}

export interface Host {
  readonly libp2p: Libp2p;
  readonly ping: PingService;
  /** Undefined when nothing is counted (`Swarm.DisableBandwidthMetrics`). */
  readonly bandwidth: Bandwidth | undefined;
  /** Connections through relays are dialled and taken. */
  readonly relayed: boolean;
  /** What is not listened on, and why not. */
  readonly unheard: Map<string, string>;
  /** Every address that is listened on. */
  listening(): readonly Multiaddr[];
  /** Tells others every address that is listened on, whether somebody has tried it from outside or not. */
  announceAll(): void;
  /** Tells nobody anything any more: to be called before libp2p stops. */
  hush(): void;
}

/** Inbound connections of one address in a second, and those that are being agreed upon. */
const burst = { perSecond: 64, pending: 256 };
/** In multiples of the most connections that are kept: what comes above it is turned away at once. */
const ceiling = 4;
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
export async function createHost(parts: HostParts): Promise<Host> {
  const { repo, book, filters, limits, agent, found } = parts;
  const { config, identity } = repo;
  const psk = await readSwarmKey(repo.path);
  const relayed = config.value("Swarm.Transports.Network.Relay") ?? !config.value("Swarm.DisableRelay");
  const unheard = new Map<string, string>();
  const quic = await quicTransport(parts, psk !== undefined);
  const transports = transportsOf(parts, relayed, quic);
  const listen = listenAddresses(parts, quic !== undefined, unheard);
  let ping: PingService | undefined;
  let bandwidth: Bandwidth | undefined;
  let components: AutoNATComponents | undefined;
  const limit = limits === undefined ? Number.MAX_SAFE_INTEGER : limits.high * ceiling;
  const libp2p = await createLibp2p({
    start: false,
    privateKey: identity.privateKey,
    nodeInfo: { userAgent: agent },
    datastore: book,
    // Formatting what nobody reads costs more than a small block does.
    ...(process.env.DEBUG === undefined ? { logger: quiet } : {}),
    addresses: {
      listen: listen.map(String),
      announce: [...(config.value("Addresses.Announce") ?? [])],
      announceFilter: announced(config.value("Addresses.NoAnnounce") ?? []),
    },
    transports: transports.map((make) => (own: TransportComponents) => watched(make(own), unheard)),
    transportManager: { faultTolerance: FaultTolerance.NO_FATAL },
    connectionEncrypters: encryptersOf(parts),
    streamMuxers: muxersOf(parts),
    ...(psk === undefined ? {} : { connectionProtector: preSharedKey({ psk: encodeSwarmKey(psk) }) }),
    connectionGater: {
      denyDialMultiaddr: (address) => filters.blocksDial(address),
      denyInboundConnection: ({ remoteAddr }) => filters.blocks(remoteAddr),
    },
    connectionManager: {
      maxConnections: limit,
      inboundConnectionThreshold: burst.perSecond,
      maxIncomingPendingConnections: burst.pending,
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
        return autoNAT()(own);
      },
      ...(relayed ? { dcutr: dcutr() } : {}),
      ...(config.value("Swarm.EnableRelayHop") ? { relay: circuitRelayServer(relaying) } : {}),
      ...(config.value("Swarm.DisableNatPortMap") ? {} : { portMapping: uPnPNAT() }),
      ...(config.value("Discovery.MDNS.Enabled") ? { localNetwork: localNetwork(parts, found) } : {}),
      ...parts.services,
    },
  });
  const own = () => components as unknown as AutoNATComponents;
  listForEachStream(own().registrar);
  limitAutoNat(libp2p, config);
  for (const address of listen) {
    if (own().transportManager.listenTransportForMultiaddr(address) === undefined) {
      unheard.set(String(address), "no transport that is on takes it");
    }
  }
  return {
    libp2p,
    ping: ping as unknown as PingService,
    bandwidth,
    relayed,
    unheard,
    listening: () => own().transportManager.getAddrs(),
    announceAll() {
      const { addressManager, transportManager } = own();
      for (const address of transportManager.getAddrs()) {
        addressManager.confirmObservedAddr(address, { type: "transport", ttl: year });
      }
    },
    hush() {
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

type TransportComponents = Parameters<ReturnType<typeof circuitRelayTransport>>[0] &
  Parameters<ReturnType<typeof webSockets>>[0];
type MakeTransport = (components: TransportComponents) => Transport;

function transportsOf({ repo: { config } }: HostParts, relayed: boolean, quic: MakeTransport | undefined) {
  const transports: MakeTransport[] = [];
  if (config.value("Swarm.Transports.Network.TCP") !== false) transports.push(tcp());
  if (config.value("Swarm.Transports.Network.Websocket") !== false) transports.push(webSockets());
  if (quic !== undefined) transports.push(quic);
  if (relayed) transports.push(circuitRelayTransport());
  return transports;
}

/** There when the operator has installed the package: it is a native one. */
async function quicTransport({ repo: { config } }: HostParts, isPrivate: boolean): Promise<MakeTransport | undefined> {
  const wanted = config.value("Swarm.Transports.Network.QUIC");
  if (wanted === true && isPrivate) {
    throw new NodeError(
      "The QUIC transport does not support private networks. Please disable Swarm.Transports.Network.QUIC.",
    );
  }
  if (wanted === false || isPrivate) return undefined;
  const name: string = "@chainsafe/libp2p-quic";
  const found = await import(name).catch(() => undefined);
  return found?.quic();
}

function listenAddresses({ repo: { config } }: HostParts, quic: boolean, unheard: Map<string, string>): Multiaddr[] {
  const texts = config.value("Addresses.Swarm") ?? [];
  let addresses: Multiaddr[];
  try {
    addresses = texts.map(parseMultiaddr);
  } catch (error) {
    throw new NodeError(`failure to parse config.Addresses.Swarm: [${texts.join(" ")}]`, { cause: error });
  }
  if (config.value("Swarm.EnableAutoRelay")) addresses.push(parseMultiaddr("/p2p-circuit"));
  return addresses.filter((address) => {
    const names = address.getComponents().map(({ name }) => name);
    if (names.includes("quic")) unheard.set(String(address), "nothing here speaks this draft of QUIC");
    else if (names.includes("quic-v1") && !quic)
      unheard.set(String(address), "@chainsafe/libp2p-quic is not installed");
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
function watched(transport: Transport, unheard: Map<string, string>): Transport {
  const { createListener } = transport;
  transport.createListener = (options) => {
    const listener = createListener.call(transport, options);
    const { listen } = listener;
    listener.listen = async (address) => {
      try {
        await listen.call(listener, address);
      } catch (error) {
        unheard.set(String(address), (error as Error).message);
        throw error;
      }
    };
    return listener;
  };
  return namingAddresses(transport);
}

interface Choice<T> {
  readonly priority: number | false | null;
  /** Where the configuration says nothing. */
  readonly usual: number;
  readonly make: T;
}

/** Those that are on, the lowest priority first. */
function chosen<T>(choices: readonly Choice<T>[]): T[] {
  return choices
    .map(({ priority, usual, make }) => ({ priority: priority ?? usual, make }))
    .filter(({ priority }) => priority !== false)
    .sort((a, b) => Number(a.priority) - Number(b.priority))
    .map(({ make }) => make);
}

type MakeEncrypter = (components: Parameters<ReturnType<typeof noise>>[0]) => ConnectionEncrypter;

function encryptersOf({ repo: { config } }: HostParts): MakeEncrypter[] {
  return chosen<MakeEncrypter>([
    { priority: config.value("Swarm.Transports.Security.Noise"), usual: 100, make: noise() },
    // Nodes of version 0.9 turn down certificates of the library's TLS: an extension that they do not know is critical.
    { priority: config.value("Swarm.Transports.Security.TLS"), usual: 300, make: tls() },
  ]);
}

function muxersOf({ repo: { config } }: HostParts): (() => StreamMuxerFactory)[] {
  return chosen<() => StreamMuxerFactory>([
    { priority: config.value("Swarm.Transports.Multiplexers.Yamux"), usual: 100, make: yamux() },
    { priority: config.value("Swarm.Transports.Multiplexers.Mplex"), usual: 200, make: oldMultiplexer() },
  ]);
}

const usualInterval = 5;

function localNetwork({ repo: { config } }: HostParts, found: HostParts["found"]) {
  const seconds = config.value("Discovery.MDNS.Interval") || usualInterval;
  return (components: Parameters<ReturnType<typeof mdns>>[0]) => {
    const discovery = mdns({ interval: seconds * 1000 })(components);
    discovery.addEventListener("peer", ({ detail }) => found(detail));
    return discovery;
  };
}
