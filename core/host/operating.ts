/** A running host as it is operated: its changes and their record, and what it tells of itself. */
import { join } from "node:path";
import { optionStates, unknownMessage } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import type { HttpModule } from "../http/index.ts";
import { AuditFile } from "../operations/audit.ts";
import { auditPage } from "../operations/audit_pages.ts";
import type { Progress, Requester } from "../operations/change.ts";
import { Changes, type Made } from "../operations/changes.ts";
import { type ConfigEdit, readConfigFile } from "../operations/config_file.ts";
import {
  applyText,
  changeText,
  editText,
  handOverText,
  type ModuleChange,
  reopenText,
  type ServerDeps,
} from "../operations/server.ts";
import { assertScopes } from "../operations/token_changes.ts";
import { threshold } from "../tls/expiry.ts";
import type {
  AuditFilter,
  AuditPage,
  CertificateState,
  Change,
  ConfigCheck,
  ConfigPlan,
  LogLine,
  ServerStatus,
  Successor,
} from "../types.ts";
import type { Log } from "../util/log.ts";
import { packageVersion } from "../util/package.ts";
import type { HostParts } from "./parts.ts";
import { attempt, dataFolder } from "./reading.ts";
import type { Host, SiblingState } from "./types.ts";

export interface OperatingDeps {
  readonly host: Host;
  readonly bus: EventBus;
  log(): Log;
  /** Undefined before the configuration is read. */
  parts(): HostParts | undefined;
  /** How the other processes of the server are. */
  others(): readonly SiblingState[];
  /** Changes are written to the audit file. */
  isAudited(): boolean;
  announce(event: string, data: unknown): void;
  /** Makes a change when it is its turn. */
  change(kind: ModuleChange, name: string, host: string | undefined, progress: Progress): Promise<void>;
  plan(): Promise<ConfigPlan>;
  /** Puts a changed configuration in force when it is its turn. */
  apply(progress: Progress): Promise<ConfigPlan>;
  check(text: string): Promise<ConfigCheck>;
  /** Writes the config file and applies it when it is its turn. */
  edit(edit: ConfigEdit, progress: Progress): Promise<ConfigPlan>;
  /** The logs of this process were opened again. */
  reopened(progress: Progress): Promise<void>;
  /** Prepares another process, when it is its turn. */
  prepare(successor: Successor, progress: Progress): Promise<void>;
}

export type { ModuleChange };

export class Operating implements ServerDeps {
  readonly changes: Changes;
  readonly #deps: OperatingDeps;
  readonly #started = new Date().toISOString();
  #audit: AuditFile | undefined;

  constructor(deps: OperatingDeps) {
    this.#deps = deps;
    this.changes = new Changes({
      mask: (text) => deps.parts()?.config.mask(text) ?? text,
      over: (change) => this.#over(change),
    });
  }

  change(kind: ModuleChange, name: string, host: string | undefined, asker: Requester): Made {
    const made = this.changes.make({ ...asker, what: changeText(kind, name, host) }, (progress) =>
      this.#deps.change(kind, name, host, progress),
    );
    // A program hears of it by itself, and may well expect it; so does who watches.
    if (asker.by !== "program" && asker.by !== "file watch") void made.inForce.then((change) => this.#tell(change));
    return made;
  }

  plan(): Promise<ConfigPlan> {
    return this.#deps.plan();
  }

  apply(asker: Requester): Made {
    return this.changes.make({ ...asker, what: applyText }, (progress) => this.#deps.apply(progress));
  }

  readonly config: ServerDeps["config"] = {
    options: () => optionStates(this.#deps.host.config, this.#deps.parts()?.waiting),
    file: () => readConfigFile(this.#deps.host.config.file),
    check: (text) => this.#deps.check(text),
    save: (edit, asker) =>
      this.changes.make({ ...asker, what: editText }, (progress) => this.#deps.edit(edit, progress)),
  };

  handOver(successor: Successor, asker: Requester): Made {
    const made = this.changes.make({ ...asker, what: handOverText }, (progress) =>
      this.#deps.prepare(successor, progress),
    );
    void made.inForce.then((change) => this.#tell(change));
    return made;
  }

  reopenLogs(asker: Requester): Made {
    return this.changes.make({ ...asker, what: reopenText }, async (progress) => {
      // Modules first: the log can tell what they fail with.
      this.#deps.announce("logs-reopened", {});
      this.#deps.log().reopen();
      await this.#deps.reopened(progress);
    });
  }

  stop(timeout: number | undefined, asker: Requester): Change {
    const { host } = this.#deps;
    const change = this.changes.note({ ...asker, what: "stop" });
    void host.stop(timeout === undefined ? {} : { timeout }).catch((error: unknown) => host.report(error));
    return change;
  }

  readonly tokens: ServerDeps["tokens"] = {
    list: () => this.#tokens.list(),
    figures: () => this.#tokens.figures(),
    create: async (wanted, by) => {
      await assertScopes((event, data) => this.#deps.bus.fire(event, data), wanted.scopes);
      return this.#tokens.create(wanted, by);
    },
    revoke: (nameOrId) => this.#tokens.revoke(nameOrId),
  };

  modules(): ServerStatus["modules"] {
    return this.#deps.host.modules();
  }

  certificates(): readonly CertificateState[] {
    return this.#deps.parts()?.certificates.states() ?? [];
  }

  status(): ServerStatus {
    const { host } = this.#deps;
    const { config } = host;
    const others = this.#deps.others();
    const isServing = host.modules().some(({ name, status }) => name === "http" && status === "loaded");
    return {
      version: packageVersion(),
      pid: process.pid,
      started: this.#started,
      phase: host.state,
      config: config.file,
      data_path: dataFolder(host.config),
      addresses: host.listening(),
      modules: host.modules(),
      certificates: this.certificates(),
      connections: others.reduce((sum, { connections }) => sum + connections, host.connections()),
      requests: [
        ...(isServing ? host.exports<HttpModule>("http").active() : []),
        ...others.flatMap(({ requests }) => requests),
      ],
      warnings: [...this.#warnings(), ...others.flatMap(failedThere)],
      ...(others.length === 0 ? {} : { processes: others.map(processOf) }),
    };
  }

  follow(event: string, hear: (data: never) => void, owner: string): () => void {
    return this.#deps.bus.add(event, hear, 0, "*", owner);
  }

  followLog(hear: (line: LogLine) => void): () => void {
    return this.#deps.log().follow(hear);
  }

  recentLog(): readonly LogLine[] {
    return this.#deps.log().recent();
  }

  async audit(filter: AuditFilter | undefined): Promise<AuditPage> {
    await this.recorded();
    return auditPage(this.#auditPath, filter);
  }

  /** Waits until all changes that are over are on disk. */
  async recorded(): Promise<void> {
    await this.changes.settled();
    await this.#audit?.written();
  }

  get #auditPath(): string {
    return join(dataFolder(this.#deps.host.config), "audit.jsonl");
  }

  get #tokens(): HostParts["tokens"] {
    const parts = this.#deps.parts();
    if (parts === undefined) throw new Error("The host has not been started: call start() first");
    return parts.tokens;
  }

  #warnings(): string[] {
    const { host } = this.#deps;
    const failed = host.modules().filter(({ status }) => status === "failed");
    const troubled = host.modules().filter(({ status, note_level }) => {
      return status === "loaded" && (note_level === "warn" || note_level === "error");
    });
    const unknown = attempt(() => host.config.unknownNames()) ?? [];
    return [
      ...failed.map(({ name, note }) => `The module ${name} is not loaded: ${note ?? "it has failed"}`),
      ...troubled.map(({ name, note }) => `The module ${name}: ${note}`),
      ...unknown.map(unknownMessage),
      ...expiring(this.#deps.parts()?.certificates),
      ...notIssued(this.certificates()),
      ...(this.#deps.parts()?.waiting ?? []).map((name) => `Another value of ${name} waits for the next start`),
      ...(this.#audit?.isFailing === true ? ["Changes are not recorded: the audit file cannot be written"] : []),
    ];
  }

  #tell({ what, by, result, error }: Change): void {
    const { log } = this.#deps.host;
    if (result === "done") log.info("%s, asked for by %s: done", what, by);
    else log.warn("%s, asked for by %s: %s: %s", what, by, result, error?.message);
  }

  #over(change: Change): void {
    const { host } = this.#deps;
    this.#deps.announce("server-changed", change);
    if (!this.#deps.isAudited() || this.#deps.parts() === undefined) return;
    this.#audit ??= new AuditFile(this.#auditPath, (reason) =>
      host.log.error("Changes are not recorded, as the audit file cannot be written: %s", reason),
    );
    this.#audit.append(change);
  }
}

const processOf = ({ number, pid, connections }: SiblingState) => ({ number, pid, connections });

function failedThere({ number, failed }: SiblingState): string[] {
  return failed.map((name) => `The module ${name} is not loaded in process ${number}`);
}

function notIssued(certificates: readonly CertificateState[]): string[] {
  return certificates.flatMap(({ name, order }) => {
    if (order === undefined || order.failures === 0) return [];
    const { authority, error, next_try } = order;
    return [`${authority} gave no certificate for ${name}: ${error}. It is asked again at ${next_try}`];
  });
}

function expiring(certificates: HostParts["certificates"] | undefined): string[] {
  const now = Date.now();
  return [...(certificates?.validity() ?? [])].flatMap(([name, certificate]) => {
    const reached = threshold(certificate, now);
    if (reached === undefined) return [];
    return [
      `The certificate for ${name} ${reached === 0 ? "has expired" : "expires"} on ${certificate.validTo.toISOString()}`,
    ];
  });
}
