/** Applies configuration changes to a running libp2p. */
import type { AutoNATComponents } from "@libp2p/autonat";
import { type CircuitRelayServerComponents, circuitRelayServer } from "@libp2p/circuit-relay-v2";
import { type DCUtRServiceComponents, dcutr } from "@libp2p/dcutr";
import { KEEP_ALIVE, start, stop, type Transport } from "@libp2p/interface";
import { mdns } from "@libp2p/mdns";
import type { UPnPNATComponents } from "@libp2p/upnp-nat";
import type { Libp2p } from "libp2p";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { failure } from "../../util/errors.ts";
import { AutoNatService } from "./autonat.ts";
import { addressMatcher } from "./filters.ts";
import { announcedAddresses, listenAddresses } from "./listen_addresses.ts";
import { Listening, type ListenRecord } from "./listening.ts";
import { type Multiaddr, transportOf } from "./multiaddr.ts";
import { replaceAnnounced } from "./patches/libp2p/replace_announced.ts";
import { replaceUpgraders } from "./patches/libp2p/replace_upgraders.ts";
import type { PatchNotices } from "./patches/notices.ts";
import { portMapping } from "./port_mapping.ts";
import { quicTransport } from "./quic.ts";
import { relayOptions } from "./relay_options.ts";
import { Switch } from "./switch.ts";
import { encryptersOf, muxersOf, type TransportComponents, transportsOf } from "./transports.ts";

/** The components that libp2p creates its services with. */
export type HostComponents = AutoNATComponents &
  TransportComponents &
  CircuitRelayServerComponents &
  DCUtRServiceComponents &
  UPnPNATComponents;

/**
 * Filters the listening addresses for announcing. libp2p calls the filter, and the configuration
 * changes it.
 */
export class Announced {
  #isHidden: (address: Multiaddr) => boolean;

  /** @throws NodeError for an entry that is not an address */
  constructor(hidden: readonly string[]) {
    this.#isHidden = addressMatcher(hidden);
  }

  /**
   * @throws NodeError for an entry that is not an address; the previous ones then stay in effect
   */
  hide(hidden: readonly string[]): void {
    this.#isHidden = addressMatcher(hidden);
  }

  readonly filter = (addresses: Multiaddr[]): Multiaddr[] =>
    addresses.filter((address) => !this.#isHidden(transportOf(address)));
}

export interface LiveHostDeps {
  readonly libp2p: Libp2p;
  readonly components: HostComponents;
  readonly config: Pick<ConfigFile, "value">;
  readonly isPrivate: boolean;
  readonly listen: readonly Multiaddr[];
  readonly record: ListenRecord;
  /** Transports by their names in the configuration. */
  readonly transports: Map<string, Transport>;
  /** Makes a transport report to the record. */
  readonly prepare: (transport: Transport) => Transport;
  readonly announced: Announced;
  readonly patches: PatchNotices;
  readonly onDiscovered: (peer: { readonly id: Libp2p["peerId"]; readonly multiaddrs: Multiaddr[] }) => void;
}

/** Tag of peers that relay for this node. */
const RELAY_TAG = `${KEEP_ALIVE}-circuit-relay`;
const DEFAULT_MDNS_INTERVAL_SECONDS = 5;

export const relayEnabledIn = (config: Pick<ConfigFile, "value">): boolean =>
  config.value("Swarm.Transports.Network.Relay") ?? !config.value("Swarm.DisableRelay");

export class LiveHost {
  readonly #deps: LiveHostDeps;
  readonly #listening: Listening;
  readonly #autoNat: AutoNatService;
  readonly #relay: Switch;
  readonly #dcutr: Switch;
  readonly #portMapping: Switch;
  readonly #mdns: Switch;

  constructor(deps: LiveHostDeps) {
    const { components, record, listen, libp2p, config } = deps;
    const { transportManager } = components;
    this.#deps = deps;
    this.#listening = new Listening(
      {
        record,
        listen: (addresses) => transportManager.listen(addresses),
        hasTransport: (address) => transportManager.listenTransportForMultiaddr(address) !== undefined,
      },
      listen,
    );
    this.#autoNat = new AutoNatService(libp2p, components.registrar, config);
    this.#relay = new Switch(() => circuitRelayServer(relayOptions(config))(components));
    this.#dcutr = new Switch(() => dcutr()(components) as object);
    this.#portMapping = new Switch(() => portMapping(components));
    this.#mdns = new Switch(() => this.#localDiscovery());
  }

  /** Must be called when libp2p has started. */
  async start(): Promise<void> {
    await this.#autoNat.renew();
    await Promise.all([this.renewRelay(), this.renewPortMapping(), this.renewLocalDiscovery()]);
  }

  /** Must be called before libp2p stops. */
  async stop(): Promise<void> {
    const all = [this.#relay, this.#dcutr, this.#portMapping, this.#mdns];
    await Promise.allSettled(all.map((each) => each.set(false)));
  }

  /** Applies `AutoNAT`. @throws NodeError for an invalid interval */
  renewAutoNat(): Promise<void> {
    return this.#autoNat.renew();
  }

  /** Applies `Swarm.EnableRelayHop` and `Swarm.EnableHolePunching`, which depend on relays. */
  async renewRelay(): Promise<void> {
    const { config } = this.#deps;
    await this.#dcutr.set(relayEnabledIn(config) && config.value("Swarm.EnableHolePunching") !== false);
    await this.#relay.set(config.value("Swarm.EnableRelayHop"));
  }

  /**
   * Applies `Swarm.RelayService`; existing reservations are dropped. @throws NodeError for an
   * invalid duration
   */
  async renewRelayLimits(): Promise<void> {
    const { config } = this.#deps;
    relayOptions(config);
    await this.#relay.set(config.value("Swarm.EnableRelayHop"), { restart: true });
  }

  /** Applies `Swarm.DisableNatPortMap`. */
  renewPortMapping(): Promise<void> {
    return this.#portMapping.set(!this.#deps.config.value("Swarm.DisableNatPortMap"));
  }

  /** Applies `Discovery.MDNS`. */
  renewLocalDiscovery(): Promise<void> {
    return this.#mdns.set(this.#deps.config.value("Discovery.MDNS.Enabled"), { restart: true });
  }

  /**
   * Applies `Addresses.Announce`, `AppendAnnounce` and `NoAnnounce`. @throws NodeError for an entry
   * that is not an address; the previous ones then stay in effect
   */
  renewAnnounced(): void {
    const { config, announced, components, patches } = this.#deps;
    const addresses = announcedAddresses(config);
    announced.hide(config.value("Addresses.NoAnnounce") ?? []);
    if (!replaceAnnounced(components.addressManager, addresses, patches)) throw waitsForStart();
  }

  /** Applies `Swarm.Transports.Security` and `Multiplexers` to new connections. */
  renewUpgraders(): void {
    const { config, components, patches } = this.#deps;
    const encrypters = encryptersOf(config, patches).map((make) => make(components));
    const muxers = muxersOf(config, patches).map((make) => make());
    if (!replaceUpgraders(components.upgrader, encrypters, muxers, patches)) throw waitsForStart();
  }

  /**
   * Applies `Swarm.Transports.Network`, `Addresses.Swarm` and `Swarm.EnableAutoRelay`.
   *
   * @throws NodeError for an invalid configuration, and for addresses that cannot be listened on
   */
  async renewListening(): Promise<void> {
    const { config, isPrivate, record, transports, prepare, components, patches } = this.#deps;
    const { transportManager } = components;
    const quic = await quicTransport(config, isPrivate, patches);
    const leftOut = new Map<string, string>();
    const listen = listenAddresses(config, quic.missing, leftOut);
    const wanted = transportsOf(config, relayEnabledIn(config), quic.make);
    for (const [name, transport] of [...transports]) {
      if (wanted.has(name)) continue;
      transports.delete(name);
      await transportManager.remove(transport[Symbol.toStringTag]);
      await stop(transport);
      for (const [address, listener] of record.opened) {
        if (listener.getAddrs().length === 0) record.opened.delete(address);
      }
    }
    for (const [name, make] of wanted) {
      if (transports.has(name)) continue;
      const transport = prepare(make(components));
      transports.set(name, transport);
      transportManager.add(transport);
      await start(transport);
    }
    await this.#listening.change(listen, leftOut);
    if (!config.value("Swarm.EnableAutoRelay")) await this.#leaveRelays();
    await this.renewRelay();
    replaceAnnounced(components.addressManager, announcedAddresses(config), patches);
  }

  /**
   * Removes the tags of unused relays, so that they are not dialled again whenever they close a
   * connection.
   */
  async #leaveRelays(): Promise<void> {
    const { peerStore } = this.#deps.libp2p;
    for (const { id } of await peerStore.all({ filters: [({ tags }) => tags.has(RELAY_TAG)] })) {
      await peerStore.merge(id, { tags: { [RELAY_TAG]: undefined } });
    }
  }

  #localDiscovery(): object {
    const { config, components, onDiscovered } = this.#deps;
    const seconds = config.value("Discovery.MDNS.Interval") || DEFAULT_MDNS_INTERVAL_SECONDS;
    const discovery = mdns({ interval: seconds * 1000 })(components);
    discovery.addEventListener("peer", ({ detail }) => onDiscovered(detail));
    return discovery;
  }
}

const waitsForStart = () => failure("RESTART_NEEDED", { reason: "the change takes effect at the next start" });
