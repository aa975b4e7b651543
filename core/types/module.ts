/** The exports of a module file, and the object that its function receives. */
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import type { EventHandler } from "../events.ts";
import type { AdminItem } from "./admin.ts";
import type { BackupItem } from "./backup.ts";
import type { HostEvents } from "./events.ts";
import type { HealthItem } from "./health.ts";
import type { MetricsProvider } from "./metrics.ts";
import type { HttpMiddleware } from "./middleware.ts";
import type { DeclaredOptionGetters, OptionDeclarations, OptionGetters } from "./options.ts";
import type { ModulePermissions } from "./permissions.ts";
import type { HttpProvider, MiddlewareProvider } from "./provider.ts";
import type { Server } from "./server.ts";
import type { StartPageItem } from "./start_page.ts";
import type { ListeningPort, ModuleState } from "./state.ts";
import type { TokenScopeItem } from "./token_scope.ts";
import type { Tokens } from "./tokens.ts";

export type { EventHandler };

/**
 * A module file's default export: runs once per load. Other modules get its return value from
 * `module.depends(name)`.
 */
export type ModuleFunction = (module: Module) => unknown;

/**
 * The exports of a module file; `D` are the options that it declares. Only `load` is required, or a
 * function as the default export instead.
 */
export interface ModuleDefinition<D extends OptionDeclarations = OptionDeclarations> {
  /** Runs at load; may be async. Its value is what dependents get from `module.depends`. */
  load(module: Module<D>): unknown;
  /** Options that this module reads, checked before anything is loaded. */
  readonly options?: D;
  /**
   * Modules that are loaded before this one. Listing them avoids the second load attempt that
   * `module.depends` may cost.
   */
  readonly depends?: readonly string[];
  /** True: loaded once for the whole server instead of once for each of `hosts`. */
  readonly global?: boolean;
  /** True: each instance runs in a worker thread of its own, and so does the code of the file. */
  readonly isolated?: boolean;
  /**
   * True: on a server with several processes, only one of them runs this module and all modules
   * that depend on it; the others pass requests for their apps to it. Use it for modules that keep
   * state.
   */
  readonly shared?: boolean;
  /**
   * On a server with several processes, each runs this module, and all requests of one client for
   * its apps, and for apps of modules that depend on it, go to the same process. Clients are
   * identified by address (true or "address"; the /64 network for IPv6), or by a cookie that the
   * host sets ("cookie"). Use it for modules that cache something per client and can do without it.
   */
  readonly sticky?: StickyBy | boolean;
  /**
   * Lists what the module needs when it runs sandboxed: files, hosts, environment variables,
   * options and functions of other modules. This grants nothing; it shows operators what to grant.
   */
  readonly permissions?: ModulePermissions;
}

/** How the clients of a sticky module are identified. */
export type StickyBy = "address" | "cookie";

/**
 * The kinds of items that the host and the bundled modules read, each with the type of its items. A
 * module that reads a kind of its own adds it by declaration merging.
 */
export interface ProvidedKinds {
  http: HttpProvider | MiddlewareProvider;
  "http-middleware": HttpMiddleware;
  net: NetProvider;
  metrics: MetricsProvider;
  health: HealthItem;
  admin: AdminItem;
  backup: BackupItem;
  "start-page": StartPageItem;
  "token-scope": TokenScopeItem;
}

/**
 * The type of the items that `module.provides` takes for a kind. `K` are the keys of the routes.
 */
export type Provided<Kind extends string, K extends string> = Kind extends "http"
  ? HttpProvider<K> | MiddlewareProvider<K>
  : Kind extends keyof ProvidedKinds
    ? ProvidedKinds[Kind]
    : object;

/**
 * The type of an item as its receivers get it: `provides(kind, item)` adds an item of the kind
 * `<kind>-provider`.
 */
export type ItemOf<Kind extends string> = Kind extends `${infer Name extends keyof ProvidedKinds}-provider`
  ? ProvidedKinds[Name]
  : unknown;

/**
 * The argument of a module's function. `D` are the options that the module declares:
 * `Module<typeof options>` reads these, each with its type; `Module` reads any option with any
 * getter.
 */
export type Module<D extends OptionDeclarations = OptionDeclarations> = string extends keyof D
  ? ModuleObject & OptionGetters
  : ModuleObject & DeclaredOptionGetters<D>;

/** The module object without the getters of options. */
export interface ModuleObject {
  /** The module's name without a leading `mod_`: `http_hello` for `mod_http_hello.ts`. */
  readonly name: string;
  /** The host that this instance serves: a name from `hosts`, or "*" for the whole server. */
  readonly host: string;
  /** While loading: true on a reload, false on a first load; undefined afterwards. */
  readonly reloading: boolean | undefined;
  /** The host's log, under the name of the module. */
  readonly log: ModuleLog;
  /**
   * Returns a text without the values of secret options, as the log writes it: for text that a
   * module sends elsewhere.
   */
  mask(text: string): string;

  // Life cycle functions: a module assigns them. All may be async.
  /**
   * Runs after the default function, and before anything of the module takes effect. It may be
   * async, like all of these.
   */
  load: (() => unknown) | undefined;
  /** Runs when the server has opened its ports, or at once if they are open already. */
  ready: (() => unknown) | undefined;
  /** Runs before a reload: the new instance receives the returned value in `restore`. */
  save: (() => unknown) | undefined;
  /**
   * Runs after a reload, before the new instance takes over. It receives what `save` of the old
   * instance returned, or `undefined` if that had no `save`.
   */
  restore: ((saved: unknown) => unknown) | undefined;
  /**
   * Runs after the last open request. Everything that was added through this object is removed
   * automatically.
   */
  unload: (() => unknown) | undefined;
  /**
   * Only for global modules: called for each of `hosts` with a module object of that host. Do work
   * that concerns all hosts once, for the last one: there may be thousands.
   */
  add_host: ((module: Module, isLast: boolean) => unknown) | undefined;
  /**
   * Runs when options have changed while the server runs: those that the module reads and that are
   * declared "live". The getters return the new values. If it throws, the whole configuration
   * change is refused; it is then called again, and the getters return the previous values.
   */
  changed: ((options: readonly string[]) => unknown) | undefined;

  /**
   * Returns the value that another module's function returned, and loads that module first if
   * necessary. Spec 2.
   */
  depends<T = unknown>(name: string): T;
  /**
   * Adds an item of a kind under this module. `"http"` takes an HttpProvider, `"http-middleware"`
   * an HttpMiddleware, `"net"` a NetProvider, `"metrics"` a MetricsProvider, `"admin"` an
   * AdminItem, `"backup"` a BackupItem, `"health"` a HealthItem, `"start-page"` a StartPageItem,
   * `"token-scope"` a TokenScopeItem. Spec 2. The returned function removes the item while the
   * module keeps running; it resolves when the item is no longer in use, which for an app is the
   * end of its last request.
   */
  provides<Kind extends string, K extends string>(kind: Kind, item: Provided<Kind, K>): () => Promise<void>;
  /** Returns the folder of the module's file. Spec 4. */
  get_directory(): string;
  /** Reads a file next to the module's file. */
  load_resource(path: string): Promise<Buffer>;
  /**
   * Imports what an option names: a file, whose path is relative to the folder of the config file
   * and which is evaluated again each time; or an npm package, resolved from that folder or else
   * from the host.
   */
  import_named(name: string): Promise<Record<string, unknown>>;
  /** Makes this instance global: from now on it belongs to no single host. */
  set_global(): void;

  /**
   * Adds an item of a kind and notifies the receivers of that kind. The returned function removes
   * it, like that of `provides`.
   */
  add_item(kind: string, item: object): () => Promise<void>;
  /**
   * Calls `added` for every item of a kind, starting with those that exist already; `removed` may
   * return a promise that the removal waits for.
   */
  handle_items<Kind extends string>(
    kind: Kind,
    added: (item: OwnedItem<ItemOf<Kind>>) => void,
    removed: (item: OwnedItem<ItemOf<Kind>>) => unknown,
  ): void;

  /**
   * Adds a hook for an event. Hooks with a higher priority run first (default 0); the first result
   * other than undefined or null ends the event.
   */
  hook<E extends keyof HostEvents>(event: E, handler: (data: HostEvents[E]) => unknown, priority?: number): void;
  hook(event: string, handler: EventHandler, priority?: number): void;
  /**
   * Runs the hooks of an event one after another and returns the first result. A global module may
   * fire an event for one of `hosts`; hooks of other hosts do not run then.
   */
  fire_event(event: string, data?: unknown, host?: string): unknown;
  /**
   * Runs every hook of an event and ignores the results; a hook that fails is logged, and the
   * others still run.
   */
  announce_event(event: string, data?: unknown, host?: string): void;
  /** Returns true if a hook exists for the event. */
  has_hooks(event: string): boolean;

  /**
   * Calls `run(now, ...values)` after `delay` seconds. If `run` returns a number, it is called
   * again after that many seconds.
   */
  add_timer<A extends unknown[]>(
    delay: number,
    run: (now: number, ...values: A) => number | void | undefined | Promise<number | void | undefined>,
    ...values: A
  ): Timer;
  /**
   * Returns the seconds since 1970, with fractions, by the clock of `add_timer`, which tests can
   * move.
   */
  now(): number;
  /**
   * Registers other work to undo at unload: `release` is called once. The returned function cancels
   * this for something that has ended by itself. `kind` is the name under which ModuleState.holds
   * counts it.
   */
  on_release(label: string, release: () => unknown, kind?: string): () => void;

  /**
   * Returns a table that modules share by path: "name", "/host/module/name", or `*` as host for the
   * whole server.
   */
  shared(path?: string): Record<string, unknown>;
  /** Sets the status that `modhost modules` shows. */
  set_status(level: "info" | "warn" | "error", text: string): void;

  /**
   * Returns the whole URL of an app of this host, for mail, feeds and callbacks. HTTPS takes
   * precedence over HTTP even if the certificate is self-signed; the option `http_external_url`
   * sets another URL. It ends as the path is configured, by default without a slash:
   * `${module.http_url()}/list`. Pages link to their own app with relative links.
   */
  http_url(app?: string, default_path?: string): string;
  /**
   * Returns the folder in which this server stores its data. `makePrivateFolder` creates it if
   * necessary; `writeFileAtomic` replaces files without a moment in which they are incomplete.
   */
  data_path(): string;
  /**
   * Returns the certificates of the server in the form that a TLS listener needs. There are none if
   * `https_ports` is empty and `certificates` has none for "*". The callback always returns current
   * certificates. `cert` and `key`, for clients that send no host name, do not change later:
   * `module.hook("certificates-changed", () => listener.setSecureContext(module.tls_options()))`.
   */
  tls_options(): TlsOptions & { SNICallback: NonNullable<TlsOptions["SNICallback"]> };
  /** Returns the host names of the option `hosts`; empty if any host is served. */
  hosts(): readonly string[];
  /** Returns the addresses that the host currently listens on. */
  listening(): readonly ListeningPort[];
  /** Returns the state of every module of the server. */
  modules(): readonly ModuleState[];
  /**
   * Returns true if modules are waiting for something that will appear by itself: one of
   * `modules()` has `is_late`. This call is cheap.
   */
  awaits_modules(): boolean;
  /**
   * Returns false if modules are only inspected (`modhost check`) or called without ports: then
   * touch nothing outside while loading.
   */
  serves(): boolean;
  /** The running server, for modules that operate it. */
  readonly server: Server;
  /**
   * The tokens of the server, for modules that check them themselves; apps set `auth: "token"`
   * instead. `module.server.tokens` creates them.
   */
  readonly tokens: Tokens;
  /**
   * Requests that the server stops, as a signal does. Open requests are finished first, including
   * this one.
   */
  stop_server(): void;
}

/** From the least to the most severe. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Writes to the host's log under the module's name: `module.log.info("sent %d", n)` or
 * `module.log("info", ...)`. An object before the message adds fields to the line, as in pino:
 * `module.log.info({ user: 7 }, "sent %d", n)`. An error in that position, or in a field, is
 * written with its type, message, stack and own fields: `module.log.error(error, "not sent")`.
 */
export type ModuleLog = LogMethod<[level: LogLevel]> &
  Record<LogLevel, LogMethod> & {
    /** Returns a log that adds these fields to each line: `module.log.child({ job: 3 })`. */
    child(fields: Readonly<Record<string, unknown>>): ModuleLog;
  };

/** Takes a message in the form of `util.format`, and fields or an error before it. */
export interface LogMethod<Before extends unknown[] = []> {
  (...values: [...Before, format: string, ...values: unknown[]]): void;
  (...values: [...Before, fields: unknown, format?: string, ...values: unknown[]]): void;
}

/** The timer that `module.add_timer` returns. */
export interface Timer {
  /** Stops the timer for good. */
  stop(): void;
  /** Sets the next call to `delay` seconds from now. */
  reschedule(delay: number): void;
}

/**
 * A port service for `module.provides("net", ...)`: the host opens its ports and passes each
 * connection on.
 */
export interface NetProvider {
  /**
   * The prefix of its options: `<name>_ports` and `<name>_interfaces`. A declared option
   * `<name>_port` of the type `port` replaces `<name>_ports`: the service then has only that port,
   * or none for 0.
   */
  readonly name: string;
  /** Ports to listen on when `<name>_ports` is not set. */
  readonly default_ports?: readonly number[];
  /**
   * Addresses to listen on when `<name>_interfaces` is not set; "*" is every address, IPv6 and
   * IPv4.
   */
  readonly default_interfaces?: readonly string[];
  /** Additional addresses to listen on, next to those of the options. */
  readonly endpoints?: readonly NetEndpoint[];
  /**
   * Called when the provider is added, with a function that changes the endpoints later: it opens
   * new ones before it closes old ones, and connections stay open. If an endpoint cannot be opened
   * the function rejects, and nothing changes.
   */
  readonly endpoints_change?: (change: (endpoints: readonly NetEndpoint[]) => Promise<void>) => void;
  /**
   * Called with the reason when the default of `<name>_port` cannot be opened: the server runs
   * without that port. Without this function the reason is logged as a warning.
   */
  readonly failed?: (reason: string) => void;
  /** The scheme with which the program prints the address: "http" or "https" make it a URL. */
  readonly scheme?: string;
  /** Whether the peer may close its sending side and still read. */
  readonly half_open?: boolean;
  /** Receives each connection, and owns it from then on. */
  onconnect(socket: Socket): void;
}

/** A port on an address (0: the system chooses), or the path of a Unix socket. */
export type NetEndpoint = (
  | { readonly address: string; readonly port: number }
  /**
   * `mode`: who may connect, for example 0o600 for the owner alone; it applies from the first
   * moment on.
   */
  | { readonly path: string; readonly mode?: number }
) & {
  /**
   * True: the start fails if it cannot be opened, as for a port of the options. Otherwise this is a
   * warning.
   */
  readonly required?: boolean;
  /** Called when it is open, with the port number if it has one. */
  readonly listening?: (port: number | undefined) => void;
  /** Called instead of the warning when it cannot be opened and is not required. */
  readonly failed?: (reason: string) => void;
};

/** An item as receivers of `handle_items` see it. */
export interface OwnedItem<T = unknown> {
  readonly item: T;
  /** The module that added it. */
  readonly owner: Module;
}
