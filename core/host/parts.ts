/** The parts of a running host, and how they are connected. */
import { join } from "node:path";
import type { Config } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import { inlineModules } from "../inline_modules.ts";
import { type IsolatedDeps, isolatedCode } from "../isolation/isolated.ts";
import { ModulePorts } from "../isolation/network/module_ports.ts";
import { Spares } from "../isolation/spares.ts";
import { Catalog } from "../module/catalog.ts";
import { Incidents } from "../module/incidents.ts";
import type { Instance } from "../module/instance.ts";
import { Items } from "../module/items.ts";
import { Modules } from "../module/lifecycle.ts";
import type { ModuleSource } from "../module/locate.ts";
import type { ModuleContext } from "../module/module_context.ts";
import { labelOf } from "../module/operation.ts";
import { type ModuleRights, permissionsOf } from "../module/rights.ts";
import { givenOnce } from "../module/saved.ts";
import { SharedTables } from "../module/shared.ts";
import { Timers } from "../module/timers.ts";
import type { Progress } from "../operations/change.ts";
import { LateLoads } from "../operations/late_loads.ts";
import { type QuarantineRules, QuarantineWatch } from "../operations/quarantine_watch.ts";
import { type ServerDeps, serverFor } from "../operations/server.ts";
import { PermissionLedger } from "../permissions/index.ts";
import { Ports } from "../ports/ports.ts";
import { Certificates, type CertificatesOptions } from "../tls/index.ts";
import { ScopeKinds, TokenStore } from "../tokens/index.ts";
import type { NetProvider, OwnedItem, TokenScopeItem } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { moduleName } from "../util/module_name.ts";
import { acmeSettings } from "./acme_settings.ts";
import { attempt, dataFolder, folderOf, seconds } from "./reading.ts";
import type { HostOptions } from "./types.ts";

export interface HostParts {
  /** The current configuration; a change of the configuration replaces it. */
  config: Config;
  /** Options whose new values wait for the next start. */
  waiting: readonly string[];
  readonly modules: Modules;
  readonly catalog: Catalog;
  readonly ports: Ports;
  readonly certificates: Certificates;
  readonly quarantine: QuarantineWatch;
  readonly lateLoads: LateLoads;
  readonly items: Items;
  readonly tokens: TokenStore;
  readonly spares: Spares;
}

/** The host, as its parts use it. */
export interface HostPartsDeps {
  readonly options: HostOptions;
  readonly config: Config;
  readonly bus: EventBus;
  readonly log: Log;
  /** Whether the ports are open: `module.ready` is then called after a load. */
  isRunning(): boolean;
  announce(event: string, data: unknown): void;
  /** Runs a change of the running host after earlier ones. */
  enqueue(operation: () => Promise<void>): Promise<void>;
  /** The operations that modules can use through `module.server`. */
  readonly operating: ServerDeps;
}

/** Creates the parts; nothing is loaded, opened or read yet. */
export function assemble(deps: HostPartsDeps): HostParts {
  const { options, config, bus, log, isRunning, announce, enqueue, operating } = deps;
  const loadTimeout = () => seconds(parts.config, "load_timeout", 30);
  const given = inlineModules(options.modules ?? [], folderOf(options), config.directory);
  const isolate = (source: ModuleSource, rights: ModuleRights) => isolatedCode(source, isolation, rights);
  const { ledger = new PermissionLedger(), outside } = options;
  const catalog = new Catalog(config, given, loadTimeout, isolate, options.siblings?.isElsewhere);
  const ports = new Ports(config, options.sockets, options.siblings?.sharedPorts);
  const certificates = new Certificates({ ...certificateOptions(config), log: log.host });
  const items = new Items();
  items.handle("net-provider", {
    added: (item) => ports.add(item as OwnedItem<NetProvider>),
    removed: (item) => ports.remove(item as OwnedItem<NetProvider>),
    fault: (error) => log.host.error("%s", reasonOf(error)),
  });
  const tokens = tokensOf({ items, log, path: () => join(dataFolder(parts.config), "tokens.json") });
  const context: ModuleContext = {
    tokens,
    bus,
    items,
    shared: new SharedTables(),
    timers: new Timers(options.clock),
    log,
    get config() {
      return parts.config;
    },
    get loadTimeout() {
      return loadTimeout();
    },
    find: (name, dependent) => modules.dependencyOf(dependent, name),
    listening: () => ports.listening(),
    states: () => modules.states(),
    awaits: () => modules.late().length > 0,
    tls: () => certificates.options(),
    serves: options.listen !== false,
    permissions: (code) => permissionsOf(code, ledger),
    failed: (owner, step, error) => quarantine.failed(owner as Instance, step, error),
    server: (requester) => serverFor(requester, operating),
  };
  const isolation = isolationDeps(deps, { context, ledger, outside, parts: () => parts });
  const modules = new Modules({
    context,
    takeSaved: givenOnce(options.states),
    catalog,
    grace: () => seconds(parts.config, "unload_grace", 10),
    settle: () => ports.settle(),
    isRunning,
    announce,
    hangUp: (name) => ports.hangUp(name),
  });
  const quarantine = new QuarantineWatch({
    rules: () => rulesOf(parts.config),
    modules: modules.quarantined,
    change: (what, operation) =>
      operating.changes.make({ what, by: "quarantine" }, ({ inForce }) => enqueue(operation).then(inForce)).work,
    warn: ({ name, host }, text) => log.of(name, host).warn("%s", parts.config.mask(text)),
    announce: (event) => announce("module-quarantined", { ...event, reason: parts.config.mask(event.reason) }),
  });
  const watches = { quarantine, lateLoads: new LateLoads({ modules, enqueue, log: log.host }) };
  const parts: HostParts = {
    config,
    waiting: [],
    modules,
    catalog,
    ports,
    certificates,
    ...watches,
    items,
    tokens,
    spares: isolation.spares,
  };
  return parts;
}

interface IsolationFacts extends Pick<IsolatedDeps, "context" | "ledger" | "outside"> {
  parts(): HostParts;
}

/** Returns what modules outside of the host's thread need of it. */
function isolationDeps(deps: HostPartsDeps, { parts, ...facts }: IsolationFacts): IsolatedDeps {
  const { enqueue, operating } = deps;
  return {
    ...facts,
    incidents: new Incidents(),
    ports: new ModulePorts(),
    spares: new Spares(),
    hostsOf: (name) => parts().catalog.hostsOf(name),
    grace: () => seconds(parts().config, "unload_grace", 10),
    ended: (owner, reason) => void parts().quarantine.quarantine(owner as Instance, reason, { isDead: true }),
    async retire(owner) {
      const instance = owner as Instance;
      const request = { what: `replace ${labelOf(instance)}`, by: "limits" };
      const replace = (progress: Progress) => enqueue(() => parts().modules.replace(instance, progress));
      await operating.changes.make(request, replace).work;
    },
  };
}

/** Creates the token store of the host; loaded modules declare the kinds of scopes. */
function tokensOf({ items, log, path }: { readonly items: Items; readonly log: Log; path(): string }): TokenStore {
  const kinds = new ScopeKinds();
  items.handle("token-scope-provider", {
    added: (item) => kinds.add(item as OwnedItem<TokenScopeItem>),
    removed: (item) => kinds.remove(item as OwnedItem<TokenScopeItem>),
    fault: (error) => log.host.error("%s", reasonOf(error)),
  });
  return new TokenStore({ kinds, path, log: log.host });
}

/** Reads the rules for modules that keep failing. */
function rulesOf(config: Config): QuarantineRules {
  return {
    failures: seconds(config, "quarantine_failures", 20),
    failedRequests: seconds(config, "quarantine_failed_requests", 1000),
    window: seconds(config, "quarantine_window", 60),
    pause: seconds(config, "quarantine_pause", 5),
    maxPause: seconds(config, "quarantine_max_pause", 600),
    loopShare: seconds(config, "quarantine_loop_share", 0.5),
    hogTime: seconds(config, "quarantine_hog_time", 3),
    exempt: new Set((attempt(() => config.value("quarantine_exempt")) as string[] | undefined)?.map(moduleName)),
  };
}

/**
 * Reads the certificate options.
 * @throws {ModhostError} OPTION_INVALID for a name for which no certificate can be issued
 */
export function certificateOptions(config: Config): Omit<CertificatesOptions, "log"> {
  const directory = join(dataFolder(config), "certs");
  return {
    directory,
    certificates: attempt(() => config.value("certificates")) as never,
    hosts: config.hosts(),
    acme: acmeSettings(config, join(directory, "acme")),
  };
}
