import type { Socket } from "node:net";
import { join, resolve } from "node:path";
import { inspect, isDeepStrictEqual } from "node:util";
import { Config, configFrom, loadConfig, type UnknownName } from "./config/index.ts";
import { EventBus } from "./events.ts";
import { entryFrom, type InlineModule, inlineModules } from "./inline_modules.ts";
import { Catalog } from "./module/catalog.ts";
import type { Clock } from "./module/clock.ts";
import { Deadline } from "./module/deadline.ts";
import { installHooks } from "./module/fresh_import.ts";
import { Items } from "./module/items.ts";
import { Modules } from "./module/lifecycle.ts";
import { moduleName } from "./module/locate.ts";
import type { ModuleContext } from "./module/module_context.ts";
import { SharedTables } from "./module/shared.ts";
import { Timers } from "./module/timers.ts";
import { Ports } from "./ports.ts";
import { Certificates } from "./tls/index.ts";
import type { ListeningPort, ModuleLog, ModuleState, NetProvider, OwnedItem } from "./types.ts";
import { ModhostError, reasonOf } from "./util/errors.ts";
import { createLog, type Log, type LogSettings } from "./util/log.ts";
import { stackOf } from "./util/stack.ts";

export interface HostOptions {
  /** The whole configuration: no file is looked for, unless `configPath` names one, over which these values win. */
  readonly config?: Readonly<Record<string, unknown>> | Config;
  /** The config file; default: searched from `cwd`. */
  readonly configPath?: string | undefined;
  /** False: without `configPath` no file is read, not even the embedded default. Default true. */
  readonly search?: boolean;
  /** Relative paths of `configPath` and `modules` count from here. Default: the current folder. */
  readonly cwd?: string;
  /** Holds the variables MODHOST_<OPTION>; default: the environment of the process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly modules?: readonly InlineModule[];
  /** False: everything is loaded and no port is opened. Default true. */
  readonly listen?: boolean;
  /** False: no certificate is read or made, and nothing is served over TLS. Default true. */
  readonly tls?: boolean;
  /** Over the options log_level and log_format; false: nothing is written. */
  readonly log?: LogSettings | false;
  /** What `module.add_timer` and `module.now` go by, and nothing else; default: the time of the system. */
  readonly clock?: Clock;
}

export type HostPhase = "new" | "starting" | "running" | "stopping" | "stopped";

/** A module host: loads modules, keeps their ports open, and takes both down again. */
export interface Host extends AsyncDisposable {
  readonly state: HostPhase;
  /** Known from `start` on. */
  readonly config: Config;
  readonly log: ModuleLog;
  /**
   * Reads the configuration, loads the modules, opens the ports. A module that fails is a ModuleState with status
   * "failed"; the others go on.
   * @throws {ModhostError} CONFIG_*, OPTION_INVALID, TLS_INVALID, PORT_*: nothing is left open then
   */
  start(): Promise<void>;
  /** Finishes requests in flight and unloads everything, in `timeout` seconds (default: the option stop_timeout). */
  stop(options?: { readonly timeout?: number }): Promise<void>;
  /** Resolves when the host has stopped, whoever asked for it: a module may by `module.stop_server()`. */
  readonly ended: Promise<void>;
  /** Loads a module by name or path: on all hosts, unless one is named. */
  load(name: string, host?: string): Promise<void>;
  /** Finishes the requests of a module and unloads it, after those that depend on it. */
  unload(name: string, host?: string): Promise<void>;
  /** Loads a module anew beside itself and exchanges both in one step; when that fails, it stays as it is. */
  reload(name: string, host?: string): Promise<void>;
  /** State of every module, of failed ones too. */
  modules(): ModuleState[];
  /** What a loaded module's function returned: the same as `module.depends` gives. */
  exports<T = unknown>(name: string, host?: string): T;
  /** Addresses that the host listens on now. */
  listening(): ListeningPort[];
  /** Number of connections that came in through the ports and are open. */
  connections(): number;
  /**
   * Gives a connection to the module that provides a service ("http", "https"), as if it had come in through a port.
   * @throws {ModhostError} SERVICE_MISSING
   */
  connect(service: string, socket: Socket): void;
  /**
   * What the host still has of a module, one line for each thing: itself, hooks, items, timers, shared tables, services,
   * connections, steps of its unloading that failed. Empty once it is unloaded.
   * @throws {ModhostError} MODULE_UNKNOWN for a module that was never loaded
   */
  residue(name: string): string[];
  /**
   * Logs an error that nobody caught, under the module whose code its stack names. Meant for the process's events
   * `unhandledRejection` and `uncaughtException`, on which the host itself never listens.
   */
  report(error: unknown): void;
  /** Fires an event to the hooks of the modules; the first answer is returned. */
  fire(event: string, data?: unknown): unknown;
}

/** Makes a host; nothing happens before `start`. */
export function createHost(options: HostOptions = {}): Host {
  return new ModuleHost(options);
}

interface Running {
  readonly config: Config;
  readonly modules: Modules;
  readonly catalog: Catalog;
  readonly ports: Ports;
  readonly certificates: Certificates;
}

class ModuleHost implements Host {
  state: HostPhase = "new";
  readonly #options: HostOptions;
  readonly #bus = new EventBus();
  #log: Log;
  #running: Running | undefined;
  /** Ends when the last operation that was asked for has ended. */
  #queue: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  readonly #end = Promise.withResolvers<void>();

  constructor(options: HostOptions) {
    this.#options = options;
    this.#log = createLog(options.log === false ? { level: "silent" } : options.log);
  }

  get config(): Config {
    return this.#parts().config;
  }

  get log(): ModuleLog {
    return this.#log.host;
  }

  async start(): Promise<void> {
    if (this.state !== "new") throw new Error("This host was started before: make another one with createHost()");
    this.state = "starting";
    try {
      await this.#enqueue(() => this.#start());
    } catch (error) {
      await this.stop({ timeout: 5 });
      throw error;
    }
  }

  stop(options: { readonly timeout?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(options.timeout).finally(() => this.#end.resolve());
    return this.#stopping;
  }

  get ended(): Promise<void> {
    return this.#end.promise;
  }

  load(name: string, host?: string): Promise<void> {
    return this.#change(host, ({ modules }) => modules.load(entryFrom(this.#cwd(), name), host));
  }

  unload(name: string, host?: string): Promise<void> {
    return this.#change(host, ({ modules }) => modules.unload(moduleName(name), host));
  }

  reload(name: string, host?: string): Promise<void> {
    return this.#change(host, ({ modules }) => modules.reload(moduleName(name), host));
  }

  modules(): ModuleState[] {
    return this.#running?.modules.states() ?? [];
  }

  exports<T = unknown>(name: string, host = "*"): T {
    const found = this.#parts().modules.find(moduleName(name), host);
    if (found === undefined) throw new ModhostError("MODULE_NOT_LOADED", { name: moduleName(name) });
    return found.exports as T;
  }

  listening(): ListeningPort[] {
    return this.#running?.ports.listening() ?? [];
  }

  connections(): number {
    return this.#running?.ports.connections() ?? 0;
  }

  connect(service: string, socket: Socket): void {
    this.#parts().ports.connect(service, socket);
  }

  residue(name: string): string[] {
    const { modules, ports } = this.#parts();
    return [...modules.residue(moduleName(name)), ...ports.ownedBy(moduleName(name))];
  }

  report(error: unknown): void {
    const owner = this.#running?.modules.errorOwner(error);
    if (owner === undefined)
      this.log.error("Nobody caught this: %s", error instanceof Error ? stackOf(error) : inspect(error));
    else owner.fault("doing what nobody waits for", error);
  }

  fire(event: string, data?: unknown): unknown {
    return this.#bus.fire(event, data);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #start(): Promise<void> {
    const config = await this.#readConfig();
    this.#configureLog(config);
    this.#log.mask((text) => config.mask(text));
    const running = this.#assemble(config);
    this.#running = running;
    const { modules, ports, certificates } = running;
    await modules.prepare();
    try {
      config.check();
    } catch (error) {
      this.#warn(config.unknownNames().filter(({ nearest }) => nearest !== undefined));
      throw error;
    }
    if (this.#listens()) for await (const refused of ports.refused()) throw refused;
    // Without ports for HTTPS nobody would be shown the self-signed one.
    const selfSigned = !isDeepStrictEqual(config.value("https_ports"), []);
    if (this.#isSecure()) await certificates.prepare({ selfSigned });
    await modules.loadEnabled(() => this.state !== "starting");
    const wrong = modules.wrongOption();
    if (wrong !== undefined) throw wrong;
    this.#warn(config.unknownNames());
    if (this.#listens() && this.state === "starting") await ports.open();
    if (this.state !== "starting") return;
    this.state = "running";
    if (!this.#listens()) return;
    await modules.ready();
    this.#announce("server-started", {});
  }

  #warn(unknown: readonly UnknownName[]): void {
    for (const { path, nearest } of unknown) {
      this.log.warn("Nothing reads the option %s%s", path, nearest === undefined ? "" : `: is ${nearest} meant?`);
    }
  }

  async #stop(timeout: number | undefined): Promise<void> {
    const hasServed = this.state === "running" && this.#listens();
    if (this.state === "new" || this.#running === undefined) {
      this.state = "stopped";
      this.#log.close();
      return;
    }
    const { config, modules, ports, certificates } = this.#running;
    this.state = "stopping";
    const deadline = new Deadline(timeout ?? seconds(config, "stop_timeout", 15));
    if (hasServed) this.#announce("server-stopping", {});
    ports.close();
    await deadline.wait(this.#queue);
    await modules.drain(deadline);
    if (hasServed) this.#announce("server-stopped", {});
    await modules.stop(deadline);
    ports.destroy();
    certificates.close();
    this.state = "stopped";
    this.#log.close();
  }

  #assemble(config: Config): Running {
    const loadTimeout = seconds(config, "load_timeout", 30);
    const given = inlineModules(this.#options.modules ?? [], this.#cwd(), config.directory);
    const catalog = new Catalog(config, given, loadTimeout);
    const ports = new Ports(config);
    const certificates = this.#certificates(config);
    const items = new Items();
    items.handle("net-provider", {
      added: (item) => ports.add(item as OwnedItem<NetProvider>),
      removed: (item) => ports.remove(item as OwnedItem<NetProvider>),
      fault: (error) => this.log.error("%s", reasonOf(error)),
    });
    const context: ModuleContext = {
      bus: this.#bus,
      items,
      shared: new SharedTables(),
      timers: new Timers(this.#options.clock),
      log: this.#log,
      config,
      loadTimeout,
      find: (name, asking) => modules.dependencyOf(asking, name),
      listening: () => ports.listening(),
      states: () => modules.states(),
      tls: () => (certificates.isReady ? certificates.options() : closedTls),
      serves: this.#listens(),
      stop: () => void this.stop().catch((error: unknown) => this.report(error)),
    };
    const modules = new Modules({
      context,
      catalog,
      grace: seconds(config, "unload_grace", 10),
      settle: () => ports.settle(),
      isRunning: () => this.state === "running" && this.#listens(),
      announce: (event, data) => this.#announce(event, data),
      hangUp: (name) => ports.hangUp(name),
    });
    return { config, modules, catalog, ports, certificates };
  }

  async #readConfig(): Promise<Config> {
    const { config, configPath, search = true, env = process.env } = this.#options;
    const cwd = this.#cwd();
    installHooks();
    if (config instanceof Config) return config;
    if (config !== undefined && configPath === undefined) return configFrom({ ...config }, cwd);
    return loadConfig({ cwd, env, path: configPath, search, values: { ...config } });
  }

  /** Wrong values are reported by the check of the configuration, with all others. */
  #configureLog(config: Config): void {
    if (this.#options.log === false) return;
    const read = (name: string) => attempt(() => config.value(name));
    const configured = { level: read("log_level"), format: read("log_format") } as LogSettings;
    const known = Object.entries(configured).filter(([, value]) => value !== undefined);
    this.#log.close();
    this.#log = createLog({ ...Object.fromEntries(known), ...this.#options.log });
  }

  #certificates(config: Config): Certificates {
    const data = attempt(() => config.value("data_path")) ?? config.directory;
    return new Certificates({
      directory: join(String(data), "certs"),
      certificates: attempt(() => config.value("certificates")) as never,
      hosts: config.hosts(),
      log: this.log,
    });
  }

  #change(host: string | undefined, change: (running: Running) => Promise<void>): Promise<void> {
    return this.#enqueue(() => {
      const running = this.#parts();
      if (this.state !== "running") throw new Error(`Modules can be changed while the host runs; it is ${this.state}`);
      if (host !== undefined) running.catalog.assertHost(host);
      return change(running);
    });
  }

  /** One operation after another. */
  #enqueue<T>(operation: () => Promise<T>): Promise<T> {
    const work = this.#queue.then(operation);
    this.#queue = work.catch(() => undefined);
    return work;
  }

  #announce(event: string, data: unknown): void {
    this.#bus.announce(event, data, (error) => this.log.error("A hook of %s failed: %s", event, reasonOf(error)));
  }

  #cwd(): string {
    return resolve(this.#options.cwd ?? process.cwd());
  }

  #listens(): boolean {
    return this.#options.listen !== false;
  }

  #isSecure(): boolean {
    return this.#listens() && this.#options.tls !== false;
  }

  #parts(): Running {
    if (this.#running === undefined) throw new Error("The host has not been started: call start() first");
    return this.#running;
  }
}

/** For hosts without TLS. */
const closedTls: ReturnType<Certificates["options"]> = {
  SNICallback: (_name, answer) => answer(new Error("This host serves nothing over TLS")),
};

function seconds(config: Config, option: string, fallback: number): number {
  return Number(attempt(() => config.value(option)) ?? fallback);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
