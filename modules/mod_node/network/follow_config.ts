/**
 * Applies configuration changes to an open network. Settings that are not listed here are read
 * whenever they are used.
 */
import type { Repo } from "../storage/repo/repo.ts";
import { type ConfigPath, isOfNetwork } from "../storage/repo/schema.ts";
import type { NodeLog } from "../util/log.ts";
import type { AutoConf } from "./auto_conf.ts";
import type { HttpSources } from "./http_retrieval/http_sources.ts";
import type { Names } from "./ipns/names.ts";
import type { Routing } from "./routing/routing.ts";
import type { Swarm } from "./swarm/swarm.ts";

/** The parts of the network that change with the configuration. */
export interface LiveParts {
  readonly config: Repo["config"];
  readonly swarm: Swarm;
  readonly routing: Routing;
  readonly names: Names;
  readonly httpSources: HttpSources;
  readonly autoConf: Pick<AutoConf, "renew">;
}

interface Rule {
  readonly paths: readonly ConfigPath[];
  /**
   * Throws or rejects if the change cannot be applied; the previous settings then stay in effect.
   */
  readonly apply: (parts: LiveParts) => unknown;
}

export const rules: readonly Rule[] = [
  {
    paths: ["Swarm.AddrFilters"],
    apply: ({ config, swarm }) => swarm.filters.replace(config.value("Swarm.AddrFilters") ?? []),
  },
  { paths: ["Peering.Peers"], apply: ({ swarm }) => swarm.keepers.renewPeering() },
  { paths: ["Bootstrap"], apply: ({ swarm }) => swarm.keepers.renewBootstrap() },
  {
    paths: [
      "Swarm.ConnMgr.Type",
      "Swarm.ConnMgr.LowWater",
      "Swarm.ConnMgr.HighWater",
      "Swarm.ConnMgr.GracePeriod",
      "Swarm.ResourceMgr.Enabled",
      "Swarm.ResourceMgr.MaxMemory",
      "Swarm.ResourceMgr.MaxFileDescriptors",
    ],
    apply: ({ swarm }) => swarm.renewLimits(),
  },
  {
    paths: [
      "Addresses.Swarm",
      "Swarm.EnableAutoRelay",
      "Swarm.DisableRelay",
      "Swarm.Transports.Network.QUIC",
      "Swarm.Transports.Network.TCP",
      "Swarm.Transports.Network.Websocket",
      "Swarm.Transports.Network.Relay",
    ],
    apply: ({ swarm }) => swarm.live.renewListening(),
  },
  {
    paths: ["Addresses.Announce", "Addresses.AppendAnnounce", "Addresses.NoAnnounce"],
    apply: ({ swarm }) => swarm.live.renewAnnounced(),
  },
  {
    paths: [
      "Swarm.Transports.Security.TLS",
      "Swarm.Transports.Security.Noise",
      "Swarm.Transports.Multiplexers.Yamux",
      "Swarm.Transports.Multiplexers.Mplex",
    ],
    apply: ({ swarm }) => swarm.live.renewUpgraders(),
  },
  { paths: ["Swarm.EnableRelayHop", "Swarm.EnableHolePunching"], apply: ({ swarm }) => swarm.live.renewRelay() },
  {
    paths: [
      "Swarm.RelayService.ConnectionDurationLimit",
      "Swarm.RelayService.ConnectionDataLimit",
      "Swarm.RelayService.ReservationTTL",
      "Swarm.RelayService.MaxReservations",
    ],
    apply: ({ swarm }) => swarm.live.renewRelayLimits(),
  },
  { paths: ["Swarm.DisableNatPortMap"], apply: ({ swarm }) => swarm.live.renewPortMapping() },
  {
    paths: ["Discovery.MDNS.Enabled", "Discovery.MDNS.Interval"],
    apply: ({ swarm }) => swarm.live.renewLocalDiscovery(),
  },
  { paths: ["AutoNAT.ServiceMode", "AutoNAT.Throttle"], apply: ({ swarm }) => swarm.live.renewAutoNat() },
  {
    paths: [
      "Reprovider.Interval",
      "Reprovider.Strategy",
      "Provide.DHT.Interval",
      "Provide.Strategy",
      "Provide.DHT.MaxWorkers",
      "Provide.DHT.DedicatedPeriodicWorkers",
      "Provide.DHT.DedicatedBurstWorkers",
      "Provide.DHT.MaxProvideConnsPerWorker",
      "Provide.DHT.KeystoreBatchSize",
      "Provide.DHT.OfflineDelay",
      "Provide.DHT.SendProviderRecordTimeout",
    ],
    apply: ({ routing }) => routing.providing.renewReprovider(),
  },
  {
    paths: [
      "HTTPRetrieval.Enabled",
      "HTTPRetrieval.Allowlist",
      "HTTPRetrieval.Denylist",
      "HTTPRetrieval.NumWorkers",
      "HTTPRetrieval.MaxBlockSize",
      "HTTPRetrieval.TLSInsecureSkipVerify",
    ],
    apply: ({ httpSources }) => httpSources.renew(),
  },
  {
    paths: [
      "Routing.Type",
      "Routing.DelegatedRouters",
      "Routing.Routers",
      "Routing.Methods",
      "Ipns.DelegatedPublishers",
    ],
    apply: ({ routing }) => routing.renewRouter(),
  },
  { paths: ["Routing.IgnoreProviders"], apply: ({ routing }) => routing.renewIgnored() },
  {
    paths: [
      "AutoConf.Enabled",
      "AutoConf.URL",
      "AutoConf.RefreshInterval",
      "AutoConf.TLSInsecureSkipVerify",
      "Bootstrap",
      "DNS.Resolvers",
      "Routing.Type",
      "Routing.DelegatedRouters",
      "Ipns.DelegatedPublishers",
    ],
    apply: ({ autoConf }) => autoConf.renew(),
  },
  { paths: ["Experimental.StrategicProviding", "Provide.Enabled"], apply: ({ routing }) => routing.providing.renew() },
  {
    paths: ["Ipns.RepublishPeriod", "Ipns.RecordLifetime", "Ipns.ResolveCacheSize", "Ipns.MaxCacheTTL"],
    apply: ({ names }) => names.renew(),
  },
];

/**
 * Create it before the network reads its configuration, so that no change is missed while the
 * network opens.
 */
export class NetworkConfig {
  readonly #config: Repo["config"];
  readonly #log: NodeLog;
  readonly #missed = new Set<Rule>();
  readonly #ends: readonly (() => void)[];
  #parts: LiveParts | undefined;

  constructor(config: Repo["config"], log: NodeLog) {
    this.#config = config;
    this.#log = log;
    this.#config.take(isOfNetwork);
    this.#ends = rules.map((rule) =>
      config.follow(rule.paths, () => {
        if (this.#parts !== undefined) return rule.apply(this.#parts);
        this.#missed.add(rule);
      }),
    );
  }

  /**
   * Applies the changes that were missed while the network opened, and applies every further change
   * immediately.
   */
  async begin(parts: Omit<LiveParts, "config">): Promise<void> {
    const whole = { ...parts, config: this.#config };
    for (const rule of this.#missed) {
      try {
        await rule.apply(whole);
      } catch (error) {
        this.#log.write("core", "error", `${rule.paths.join(", ")}: ${(error as Error).message}`);
      }
    }
    this.#parts = whole;
    await whole.autoConf.renew().catch((error: Error) => {
      this.#log.write("core", "error", `AutoConf: ${error.message}`);
    });
  }

  end(): void {
    for (const end of this.#ends) end();
  }
}
