/** Keeps a running host current: its config file, the files of its modules, its certificates. */
import type { EventBus } from "../events.ts";
import type { Certificates } from "../tls/index.ts";
import type { Change, ModuleLog } from "../types.ts";
import { CertificateUpkeep } from "./certificate_upkeep.ts";
import { ConfigWatch } from "./config_watch.ts";
import { ModuleWatch } from "./module_watch.ts";
import type { Operating } from "./operating.ts";
import type { HostParts } from "./parts.ts";

export interface UpkeepDeps {
  readonly bus: EventBus;
  readonly operating: Pick<Operating, "change" | "changes">;
  readonly log: () => ModuleLog;
  /** Runs a change in its turn. */
  enqueue(what: string, operation: () => Promise<void>): Promise<void>;
  announce(event: string, data: unknown): void;
  /** Applies a changed config file. */
  apply(): Promise<unknown>;
  /** Logs a thrown value. */
  report(error: unknown): void;
}

export class Upkeep {
  readonly #deps: UpkeepDeps;
  readonly #config: ConfigWatch;
  #modules: ModuleWatch | undefined;
  #certificates: CertificateUpkeep | undefined;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
    this.#config = new ConfigWatch({ apply: () => deps.apply(), failed: this.#failed });
  }

  /** Watches this config file, or none; replaces the previous one. */
  async followConfig(file: string | undefined): Promise<void> {
    await this.#config.follow(file);
  }

  /**
   * Reloads modules whose files are saved from `since` on (milliseconds since 1970); `shown` is
   * called with the result of each reload.
   */
  watchModules(parts: HostParts, since: number, shown: (change: Change) => void): void {
    const { bus, operating, report } = this.#deps;
    this.#modules = new ModuleWatch({
      parts,
      bus,
      reload: (name) => operating.change("reload", name, undefined, { by: "file watch" }).inForce,
      shown,
      failed: this.#failed,
    });
    void this.#modules.start(since).catch(report);
  }

  /** `orders`: whether this process also orders certificates by ACME. */
  keepCertificates(certificates: Certificates, { orders }: { readonly orders: boolean }): void {
    const { bus, operating, log, enqueue, announce } = this.#deps;
    this.#certificates = new CertificateUpkeep({
      certificates,
      orders,
      changes: operating.changes,
      enqueue: (operation) => enqueue("certificates", operation),
      announce,
      hook: (event, handler) => bus.add(event, handler),
      log: log(),
    });
    this.#certificates.follow();
  }

  /** Called after a change of the configuration, which may name other certificates. */
  followCertificates(): void {
    this.#certificates?.follow();
  }

  /** Stops for good; resolves when no certificate order is in progress. */
  async stop(): Promise<void> {
    this.#config.close();
    const certificatesStopped = this.#certificates?.stop();
    this.#modules?.close();
    await certificatesStopped;
  }

  readonly #failed = (text: string, ...values: unknown[]) => this.#deps.log().error(text, ...values);
}
