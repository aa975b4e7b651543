/** What a module file exports, and the object that its function is called with. */
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
import type { HttpProvider, MiddlewareProvider } from "./provider.ts";
import type { Server } from "./server.ts";
import type { ListeningPort, ModuleState } from "./state.ts";
import type { Tokens } from "./tokens.ts";

export type { EventHandler };

/** A module file's default export: runs once per load. What it returns is what `module.depends(name)` gives others. */
export type ModuleFunction = (module: Module) => unknown;

/** What a module file may export; `D` are the options that it declares. Only `load`, or a default export that is a function in its place, is required. */
export interface ModuleDefinition<D extends OptionDeclarations = OptionDeclarations> {
  /** Runs at load; may be async. Its value is what dependents get from `module.depends`. */
  load(module: Module<D>): unknown;
  /** Options that this module reads, checked before anything is loaded. */
  readonly options?: D;
  /** Modules to be loaded before this one; spares the second attempt that `module.depends` may cost. */
  readonly depends?: readonly string[];
  /** True: loaded once for the whole server instead of once for each of `hosts`. */
  readonly global?: boolean;
  /** True: each instance runs in a worker thread of its own, and so does the code of the file. */
  readonly isolated?: boolean;
  /**
   * True: of a server of several processes, one alone runs it, and with it all modules that depend on it; the others hand
   * requests for their apps to that one. For modules that keep state.
   */
  readonly shared?: boolean;
  /**
   * Of a server of several processes, each runs it, and the requests of one client for its apps, and for those of modules that depend on it, are
   * answered by the same one. Clients are told apart by their address (true or "address"; of IPv6 by the network of 64 bits), or by a
   * cookie that the host gives them ("cookie"). For modules that keep something of each client in memory, and can do without it.
   */
  readonly sticky?: StickyBy | boolean;
}

/** What tells the clients of a sticky module apart. */
export type StickyBy = "address" | "cookie";

/** What `module.provides` takes, by kind. `K` are the keys of the routes. */
export type Provided<Kind extends string, K extends string> = Kind extends "http"
  ? HttpProvider<K> | MiddlewareProvider<K>
  : Kind extends "net"
    ? NetProvider
    : Kind extends "http-middleware"
      ? HttpMiddleware
      : Kind extends "metrics"
        ? MetricsProvider
        : Kind extends "admin"
          ? AdminItem
          : Kind extends "backup"
            ? BackupItem
            : Kind extends "health"
              ? HealthItem
              : object;

/** What receivers of a kind get: `provides(kind, item)` adds an item of the kind `<kind>-provider`. */
export type ItemOf<Kind extends string> = Kind extends "http-provider"
  ? HttpProvider | MiddlewareProvider
  : Kind extends "net-provider"
    ? NetProvider
    : Kind extends "http-middleware-provider"
      ? HttpMiddleware
      : Kind extends "metrics-provider"
        ? MetricsProvider
        : Kind extends "admin-provider"
          ? AdminItem
          : Kind extends "backup-provider"
            ? BackupItem
            : Kind extends "health-provider"
              ? HealthItem
              : unknown;

/**
 * What a module's function is called with. `D` are the options that the module declares: `Module<typeof options>` reads
 * these, each by its type; `Module` reads any option by any getter.
 */
export type Module<D extends OptionDeclarations = OptionDeclarations> = string extends keyof D
  ? ModuleObject & OptionGetters
  : ModuleObject & DeclaredOptionGetters<D>;

/** The module object, but for the getters of options. */
export interface ModuleObject {
  /** The module's name less one leading `mod_`: `http_hello` for `mod_http_hello.ts`. */
  readonly name: string;
  /** The host that this instance serves: a name from `hosts`, or "*" for the whole server. */
  readonly host: string;
  /** While loading: true on a reload, false on a first load; undefined afterwards. */
  readonly reloading: boolean | undefined;
  /** The host's log, under the name of the module. */
  readonly log: ModuleLog;

  // Functions of the life cycle: assign them. All may be async.
  /** After the default function, and before anything of the module is live. May be async, like all of these. */
  load: (() => unknown) | undefined;
  /** The server has opened its ports (at once, when it had before this load). */
  ready: (() => unknown) | undefined;
  /** Before a reload: the value returned here is handed to `restore` of the new instance. */
  save: (() => unknown) | undefined;
  /**
   * After a reload: gets what `save` of the old instance returned, before the new one takes over; `undefined` where that
   * had no `save`.
   */
  restore: ((saved: unknown) => unknown) | undefined;
  /** After the last request in flight; what was added through this object is removed without help. */
  unload: (() => unknown) | undefined;
  /** Global modules only: called for each of `hosts` with a module object of that host. */
  add_host: ((module: Module) => unknown) | undefined;
  /**
   * Options have changed while the server runs: of those that the module reads and that are declared "live". Their new
   * values are read as ever. What it throws refuses the whole change of the configuration; it is called again then, and
   * the options have their former values.
   */
  changed: ((options: readonly string[]) => unknown) | undefined;

  /** Loads another module if need be and gives what its function returned. Spec 2. */
  depends<T = unknown>(name: string): T;
  /**
   * Declares an item of a kind under this module. `"http"` takes an HttpProvider, `"http-middleware"` an HttpMiddleware,
   * `"net"` a NetProvider, `"metrics"` a MetricsProvider, `"admin"` an AdminItem, `"backup"` a BackupItem, `"health"` a
   * HealthItem. Spec 2. The function that it gives takes the item back while the module goes on; it resolves when whoever has the item has let
   * go of it, which for an app is the end of its last request.
   */
  provides<Kind extends string, K extends string>(kind: Kind, item: Provided<Kind, K>): () => Promise<void>;
  /** The folder of the module's file. Spec 4. */
  get_directory(): string;
  /** The bytes of a file beside the module's file. */
  load_resource(path: string): Promise<Buffer>;
  /**
   * Imports what an option names: a file, whose path counts from the config file's folder and which is evaluated anew
   * each time, or an npm package as seen from there, or else by the host.
   */
  import_named(name: string): Promise<Record<string, unknown>>;
  /** From now on this instance belongs to no single host. */
  set_global(): void;

  /** Adds an item of a kind; receivers of that kind are told. The function that it gives takes it back, as that of `provides`. */
  add_item(kind: string, item: object): () => Promise<void>;
  /** Calls `added` for every item of a kind, those already there first; `removed` may return a promise to wait for. */
  handle_items<Kind extends string>(
    kind: Kind,
    added: (item: OwnedItem<ItemOf<Kind>>) => void,
    removed: (item: OwnedItem<ItemOf<Kind>>) => unknown,
  ): void;

  /** Higher priority first (default 0); the first answer other than undefined or null ends the event. */
  hook<E extends keyof HostEvents>(event: E, handler: (data: HostEvents[E]) => unknown, priority?: number): void;
  hook(event: string, handler: EventHandler, priority?: number): void;
  /**
   * Asks one hook after the other and gives the first answer. A module of the whole server may fire an event for one of
   * `hosts`; the others hear nothing of it then.
   */
  fire_event(event: string, data?: unknown, host?: string): unknown;
  /** Tells every hook of an event, whatever the others answer; one that fails is logged and stops nothing. */
  announce_event(event: string, data?: unknown, host?: string): void;
  /** True when somebody listens. */
  has_hooks(event: string): boolean;

  /** Calls `run(now, ...values)` after `delay` seconds; a returned number is the delay of the next call. */
  add_timer<A extends unknown[]>(
    delay: number,
    run: (now: number, ...values: A) => number | void | undefined | Promise<number | void | undefined>,
    ...values: A
  ): Timer;
  /** Seconds since 1970, with fractions, by the clock of `add_timer`, which tests can move. */
  now(): number;
  /**
   * Records anything else to be undone at unload: `release` is called once. What has ended by itself before is
   * forgotten by the function that this returns. `kind` is what ModuleState.holds counts it under.
   */
  on_release(label: string, release: () => unknown, kind?: string): () => void;

  /** A table shared by path between modules: "name", "/host/module/name" or `*` as host for the whole server. */
  shared(path?: string): Record<string, unknown>;
  /** Shown by `modhost modules`. */
  set_status(level: "info" | "warn" | "error", text: string): void;

  /**
   * The whole URL of an app of this host, for what is read elsewhere: mail, feeds, callbacks. HTTPS goes before HTTP,
   * though the certificate may be self-signed: the option `http_external_url` says what clients shall use. It ends as
   * the path is configured, by default without a slash: `${module.http_url()}/list`. Pages link to their own app by
   * relative links.
   */
  http_url(app?: string, default_path?: string): string;
  /**
   * The folder in which this server keeps its data; `makePrivateFolder` makes it where there is none yet, `writeFileAtomic`
   * writes files that are whole at any time.
   */
  data_path(): string;
  /**
   * Certificates of the server: what a TLS listener needs. There are none where `https_ports` is empty and `certificates`
   * names none of "*". The callback always gives current ones; `cert` and `key`, for clients that name no host, are those
   * of now: `module.hook("certificates-changed", () => listener.setSecureContext(module.tls_options()))`.
   */
  tls_options(): TlsOptions & { SNICallback: NonNullable<TlsOptions["SNICallback"]> };
  /** Host names of the option `hosts`; empty when any host is served. */
  hosts(): readonly string[];
  /** Addresses that the host listens on now. */
  listening(): readonly ListeningPort[];
  /** State of every module of the server. */
  modules(): readonly ModuleState[];
  /** Modules are to come that lack something which comes by itself: one of `modules()` has `is_late`, told at little cost. */
  awaits_modules(): boolean;
  /** False where modules are only looked at (`modhost check`) or called without ports: touch nothing outside while loading. */
  serves(): boolean;
  /** The running server: for modules that operate it. */
  readonly server: Server;
  /**
   * The tokens of the server, for modules that check them by themselves; apps say `auth: "token"` instead. They are made by
   * `module.server.tokens`.
   */
  readonly tokens: Tokens;
  /** Asks the server to stop, as a signal does: requests in flight are finished first, this one too. */
  stop_server(): void;
}

/** From the least to the most severe. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Writes to the host's log under the module's name: `module.log.info("sent %d", n)` or `module.log("info", ...)`. */
export type ModuleLog = ((level: LogLevel, format: string, ...values: unknown[]) => void) &
  Record<LogLevel, (format: string, ...values: unknown[]) => void>;

/** What `module.add_timer` gives. */
export interface Timer {
  /** The timer never fires again. */
  stop(): void;
  /** The next firing comes `delay` seconds from now. */
  reschedule(delay: number): void;
}

/** A port service given to `module.provides("net", ...)`: the host opens its ports and hands over each connection. */
export interface NetProvider {
  /** Names the options: `<name>_ports` and `<name>_interfaces`. */
  readonly name: string;
  /** Ports to listen on when `<name>_ports` is not set. */
  readonly default_ports?: readonly number[];
  /** Addresses to listen on when `<name>_interfaces` is not set; "*" is every address, IPv6 and IPv4. */
  readonly default_interfaces?: readonly string[];
  /** Further places to listen on, beside what the options say. */
  readonly endpoints?: readonly NetEndpoint[];
  /**
   * Called when the provider is added, with what gives it other endpoints later: new ones open before old ones close, and
   * connections go on. That rejects when one cannot be opened: all is as it was then.
   */
  readonly endpoints_change?: (change: (endpoints: readonly NetEndpoint[]) => Promise<void>) => void;
  /** Shown when the program prints its addresses: "http" or "https" make the entry a URL. */
  readonly scheme?: string;
  /** The peer may close its sending side and still read. */
  readonly half_open?: boolean;
  /** Owns the connection from here on. */
  onconnect(socket: Socket): void;
}

/** A port of one address (0: of the system's choice), or the path of a Unix socket. */
export type NetEndpoint = (
  | { readonly address: string; readonly port: number }
  /** `mode`: who may connect, such as 0o600 for its owner alone; it is so from the first moment on. */
  | { readonly path: string; readonly mode?: number }
) & {
  /** True: where it cannot be opened, the start fails as it does for a port of the options. Else that is a warning. */
  readonly required?: boolean;
  /** Called when it is open, with the port of one that has a port. */
  readonly listening?: (port: number | undefined) => void;
  /** Called when it cannot be opened and is not required, in place of the warning. */
  readonly failed?: (reason: string) => void;
};

/** An item as receivers of `handle_items` see it. */
export interface OwnedItem<T = unknown> {
  readonly item: T;
  /** The module that added it. */
  readonly owner: Module;
}
