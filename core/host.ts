import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config, UnknownName } from "./config/index.ts";
import { EventBus } from "./events.ts";
import { ErrorAttribution } from "./host/error_attribution.ts";
import { changeModule } from "./host/module_change.ts";
import { type ModuleChange, Operating } from "./host/operating.ts";
import { assemble, certificateOptions, type HostParts } from "./host/parts.ts";
import { Queue } from "./host/queue.ts";
import { folderOf, logSettings, openLog, readAgain, readFirst, readWith, seconds } from "./host/reading.ts";
import { isSecondary, rolling, sharedFace } from "./host/siblings.ts";
import { startPageOf } from "./host/start_page.ts";
import type { Handed, Host, HostOptions, HostPhase, ProcessAct } from "./host/types.ts";
import { appsOf, warnOfUnknown } from "./host/unknown_options.ts";
import { Upkeep } from "./host/upkeep.ts";
import { entryFrom } from "./inline_modules.ts";
import { Deadline } from "./module/deadline.ts";
import { installHooks } from "./module/fresh_import.ts";
import type { SavedState } from "./module/saved.ts";
import { type ApplyOptions, applyConfig, planConfig } from "./operations/apply.ts";
import type { Progress } from "./operations/change.ts";
import { checkConfig, editConfig, type ReadWith } from "./operations/config_edit.ts";
import { checkNames } from "./operations/protection.ts";
import { handOverText } from "./operations/server.ts";
import type { PausedPort } from "./ports/inherited.ts";
import { servesHttps } from "./ports/service.ts";
import type { ConfigPlan, ListeningPort, ModuleLog, ModuleState, ServerStatus } from "./types.ts";
import { ModhostError, reasonOf } from "./util/errors.ts";
import { createLog, type Log } from "./util/log.ts";
import { moduleName } from "./util/module_name.ts";
import { keepTickShape } from "./util/tick_shape.ts";
import { asHost } from "./util/usage.ts";

export type { Handed, Host, HostOptions, HostPhase, ReplicatedChange, SiblingState, Siblings } from "./host/types.ts";
export type { SavedState } from "./module/saved.ts";

/** Creates a host; nothing happens before `start`. */
export function createHost(options: HostOptions = {}): Host {
  return new ModuleHost(options);
}

class ModuleHost implements Host {
  state: HostPhase = "new";
  readonly #options: HostOptions;
  readonly #bus = new EventBus();
  #log: Log;
  #running: HostParts | undefined;
  readonly #queue = new Queue();
  #stopping: Promise<void> | undefined;
  readonly #end = Promise.withResolvers<void>();
  readonly ended: Promise<void> = this.#end.promise;
  readonly #attribution = new ErrorAttribution({ host: this, log: () => this.#log, parts: () => this.#running });
  readonly #operating = new Operating({
    host: this,
    bus: this.#bus,
    log: () => this.#log,
    parts: () => this.#running,
    others: () => this.#options.siblings?.states?.() ?? [],
    isAudited: () => this.#listens() && !isSecondary(this.#options),
    announce: (event, data) => this.#announce(event, data),
    change: (kind, name, host, progress) => this.#change(kind, name, host, progress),
    plan: () => this.plan(),
    prepare: (next, progress) =>
      this.#enqueue(handOverText, async () => {
        const { prepareNext: prepare } = this.#options;
        const reason = "only a server that modhost run has started can be handed over";
        if (prepare === undefined) throw new ModhostError("CHANGE_REFUSED", { what: handOverText, reason });
        await prepare(next, progress);
      }),
    apply: (progress) =>
      rolling(this.#options, { kind: "apply" }, progress, (own) =>
        this.#reconfigure((parts, options) => applyConfig(parts, options, own)),
      ),
    reopened: (progress) => rolling(this.#options, { kind: "reopen" }, progress, () => Promise.resolve()),
    check: (edited) =>
      this.#reconfigure((parts, options) => checkConfig(parts, options, edited, this.#readWith(parts))),
    edit: (edit, progress) =>
      rolling(this.#options, { kind: "apply" }, progress, (own) =>
        this.#reconfigure((parts, options) => {
          const written = async () => {
            await this.#upkeep.followConfig(undefined);
            await this.#watchConfig();
          };
          return editConfig(parts, options, { edit, read: this.#readWith(parts), progress: own, written });
        }),
      ),
  });

  readonly shared = sharedFace(
    () => this.#running,
    () => this.#log,
  );
  readonly startPage = () => startPageOf(this.#running);
  readonly handedOver = (by: string, error?: unknown) => this.#operating.handedOver(by, error);
  readonly #upkeep = new Upkeep({
    bus: this.#bus,
    operating: this.#operating,
    log: () => this.log,
    enqueue: (what, operation) => this.#enqueue(what, operation),
    announce: (event, data) => this.#announce(event, data),
    apply: () => this.apply({ by: "file watch" }),
    report: (error) => this.report(error),
  });

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
    if (this.state !== "new") throw new Error("This host was already started: create another one with createHost()");
    this.state = "starting";
    keepTickShape();
    try {
      await this.#queue.add(() => this.#start());
    } catch (error) {
      await this.stop({ timeout: 5 });
      throw error;
    }
  }

  stop({ timeout, by }: { readonly timeout?: number; readonly by?: string } = {}): Promise<void> {
    if (this.#stopping !== undefined) return this.#stopping;
    if (by !== undefined) this.#operating.changes.note({ what: "stop", by });
    this.#stopping = asHost(() => this.#stop(timeout)).finally(() => this.#end.resolve());
    return this.#stopping;
  }

  async handOver(): Promise<Handed> {
    if (this.#stopping !== undefined || this.state !== "running") {
      throw new ModhostError("CHANGE_REFUSED", { what: handOverText, reason: `it is ${this.state}` });
    }
    const handing = { ports: [] as PausedPort[], states: [] as SavedState[] };
    this.#stopping = this.#stop(undefined, handing).finally(() => this.#end.resolve());
    await this.#stopping;
    return handing;
  }

  load(name: string, host?: string): Promise<void> {
    return this.#byProgram("load", name, host);
  }

  unload(name: string, host?: string): Promise<void> {
    return this.#byProgram("unload", name, host);
  }

  reload(name: string, host?: string): Promise<void> {
    return this.#byProgram("reload", name, host);
  }

  status(): ServerStatus {
    return this.#operating.status();
  }

  plan(): Promise<ConfigPlan> {
    return this.#reconfigure(planConfig);
  }

  async apply({ by = "program" }: { readonly by?: string } = {}): Promise<ConfigPlan> {
    return (await this.#operating.apply({ by }).work) as ConfigPlan;
  }

  async reopenLogs(by = "program"): Promise<void> {
    await this.#operating.reopenLogs({ by }).work;
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
    this.#attribution.report(error);
  }

  contain(error: unknown): boolean {
    return this.#attribution.contain(error);
  }

  refuse(act: ProcessAct): Error | undefined {
    return this.#attribution.refuse(act);
  }

  fire(event: string, data?: unknown): unknown {
    return this.#bus.fire(event, data);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #start(): Promise<void> {
    installHooks();
    const config = await readFirst(this.#options);
    this.#configureLog(config);
    const running = assemble({
      options: this.#options,
      config,
      bus: this.#bus,
      log: this.#log,
      isRunning: () => this.state === "running" && this.#listens(),
      announce: (event, data) => this.#announce(event, data),
      enqueue: (operation) => this.#enqueue("quarantine", operation),
      operating: this.#operating,
    });
    this.#running = running;
    const { modules, catalog, ports, certificates } = running;
    const loading = Date.now();
    config.checkModules(() => catalog.unknownModules());
    await modules.prepare();
    try {
      config.check();
    } catch (error) {
      this.#warn(config.unknownNames().filter(({ nearest }) => nearest !== undefined));
      throw error;
    }
    if (this.#listens()) for await (const { error, isOptional } of ports.refused()) if (!isOptional) throw error;
    // Without HTTPS ports no client would ever see the self-signed certificate.
    const selfSigned = servesHttps(config);
    if (this.#isSecure()) await certificates.prepare({ selfSigned });
    await modules.loadEnabled(() => this.state !== "starting");
    const wrong = modules.wrongOption();
    if (wrong !== undefined) throw wrong;
    const apps = appsOf(this.#options, modules);
    if (apps !== undefined) await checkNames(config, catalog, apps);
    this.#warn(config.unknownNames(apps));
    const unused = this.#listens() && this.state === "starting" ? await ports.open() : [];
    for (const line of unused) this.log.warn("%s", line);
    if (this.state !== "starting") return;
    this.state = "running";
    running.quarantine.start();
    this.#attribution.started();
    running.lateLoads.start();
    if (this.#isSecure()) this.#upkeep.keepCertificates(certificates, { orders: !isSecondary(this.#options) });
    if (!this.#listens()) return;
    await modules.ready();
    this.#options.siblings?.changed?.();
    await this.#watchConfig();
    if (!this.#isRunning()) return;
    this.#announce("server-started", {});
    if (this.#options.watch !== undefined) this.#upkeep.watchModules(running, loading, this.#options.watch);
  }

  // A secondary process does not read the options of modules that run elsewhere.
  readonly #warn = (unknown: readonly UnknownName[]) => {
    if (!isSecondary(this.#options)) warnOfUnknown(this.log, unknown);
  };

  /** `handing` receives the ports and states for the next host. */
  async #stop(timeout: number | undefined, handing?: { ports: PausedPort[]; states: SavedState[] }): Promise<void> {
    const hasServed = this.state === "running" && this.#listens();
    if (this.state === "new" || this.#running === undefined) {
      this.state = "stopped";
      this.#log.close();
      return;
    }
    const { config, modules, ports, certificates, quarantine, lateLoads, tokens, spares } = this.#running;
    this.state = "stopping";
    const certificatesStopped = this.#upkeep.stop();
    quarantine.stop();
    lateLoads.stop();
    if (hasServed) this.#announce("server-leaving", {});
    const delay = hasServed && handing === undefined ? seconds(config, "stop_delay", 0) : 0;
    // Everything is still served: load balancers must notice first.
    if (delay > 0) await sleep(delay * 1000);
    const deadline = new Deadline(timeout ?? seconds(config, "stop_timeout", 15));
    handing?.ports.push(...(await ports.pause()));
    if (hasServed) this.#announce("server-stopping", {});
    await ports.close();
    await deadline.wait(Promise.all([certificatesStopped, ports.receivedFirstBytes(), this.#queue.settled()]));
    await modules.drain(deadline);
    handing?.states.push(...(await modules.save()));
    if (hasServed) this.#announce("server-stopped", {});
    await modules.stop(deadline);
    await spares.close();
    ports.destroy();
    certificates.close();
    await tokens.close();
    await this.#operating.recorded();
    this.state = "stopped";
    this.#log.close();
  }

  #readWith({ config }: HostParts): ReadWith {
    return (edited) => readWith(this.#options, config.file, edited);
  }

  #reconfigure<T>(how: (parts: HostParts, options: ApplyOptions) => Promise<T>): Promise<T> {
    return this.#queue.add(async () => {
      if (this.state !== "running") {
        const reason = `it can be changed while the host runs; it is ${this.state}`;
        throw new ModhostError("CHANGE_REFUSED", { what: "another configuration", reason });
      }
      const options: ApplyOptions = {
        read: () => readAgain(this.#options),
        isSecure: this.#isSecure(),
        certificateOptions,
        configureLog: (config) => {
          if (this.#options.log !== false) this.#log.configure(logSettings(config, this.#options.log));
        },
        warn: (unknown) => this.#warn(unknown),
        apps: () => appsOf(this.#options, this.#parts().modules),
        announce: (event, data) => this.#announce(event, data),
        log: this.#log,
      };
      const made = await how(this.#parts(), options);
      if (this.#isRunning()) this.#upkeep.followCertificates();
      await this.#watchConfig();
      return made;
    });
  }

  async #watchConfig(): Promise<void> {
    const { config } = this.#parts();
    const isWanted = config.value("config_watch") === true || this.#options.watch !== undefined;
    const isWatched = isWanted && !isSecondary(this.#options);
    // The host may have stopped meanwhile, and closed its file watches.
    await this.#upkeep.followConfig(isWatched && this.#isRunning() && this.#listens() ? config.file : undefined);
  }

  #configureLog(config: Config): void {
    if (this.#options.log === false) return;
    this.#log.close();
    this.#log = openLog(config, this.#options.log);
  }

  async #byProgram(kind: ModuleChange, name: string, host: string | undefined): Promise<void> {
    await this.#operating.change(kind, name, host, { by: "program" }).work;
  }

  /** Runs the change in its turn. */
  #change(kind: ModuleChange, name: string, host: string | undefined, progress: Progress): Promise<void> {
    const entry = kind === "load" ? entryFrom(folderOf(this.#options), name) : name;
    return rolling(this.#options, { kind, name: entry, host }, progress, (own) =>
      this.#enqueue(`${kind} ${name}`, () => changeModule(this.#parts(), { kind, entry, host }, own, this.log)),
    );
  }

  #enqueue(what: string, operation: () => Promise<void>): Promise<void> {
    return this.#queue.add(() => {
      if (this.state === "running") return operation();
      const reason = `modules can be changed while the host runs; it is ${this.state}`;
      throw new ModhostError("CHANGE_REFUSED", { what, reason });
    });
  }

  #announce(event: string, data: unknown): void {
    this.#bus.announce(event, data, (error) => this.log.error("A hook of %s failed: %s", event, reasonOf(error)));
  }

  /** To be checked after every await, because a stop may have begun meanwhile. */
  #isRunning(): boolean {
    return this.state === "running";
  }

  #listens(): boolean {
    return this.#options.listen !== false;
  }

  #isSecure(): boolean {
    return this.#listens() && this.#options.tls !== false;
  }

  #parts(): HostParts {
    if (this.#running === undefined) throw new Error("The host has not been started: call start() first");
    return this.#running;
  }
}
