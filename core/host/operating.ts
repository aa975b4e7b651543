/** Operates a running host: makes and records its changes, and reports its status. */
import { statfsSync } from "node:fs";
import { join } from "node:path";
import { optionStates, unknownMessage } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import type { HttpModule } from "../http/index.ts";
import { AuditFile } from "../operations/audit.ts";
import { auditPage } from "../operations/audit_pages.ts";
import type { Progress, Requester } from "../operations/change.ts";
import { type ChangeInProgress, Changes } from "../operations/changes.ts";
import type { EditedText } from "../operations/config_edit.ts";
import { type ConfigEdit, readConfigFile, readLockFile } from "../operations/config_file.ts";
import {
  applyText,
  changeText,
  editText,
  handOverText,
  type ModuleChange,
  prepareText,
  reopenText,
  type ServerDeps,
} from "../operations/server.ts";
import { threshold } from "../tls/expiry.ts";
import type {
  AuditFilter,
  AuditPage,
  CertificateState,
  Change,
  ConfigCheck,
  ConfigPlan,
  LogLine,
  NextServerProcess,
  ServerStatus,
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
  /** Returns the states of the other processes of the server. */
  others(): readonly SiblingState[];
  /** Whether changes are written to the audit file. */
  isAudited(): boolean;
  announce(event: string, data: unknown): void;
  /** Runs a change in its turn. */
  change(kind: ModuleChange, name: string, host: string | undefined, progress: Progress): Promise<void>;
  plan(): Promise<ConfigPlan>;
  /** Applies a changed configuration in its turn. */
  apply(progress: Progress): Promise<ConfigPlan>;
  check(edited: EditedText): Promise<ConfigCheck>;
  /** Writes the file and applies it, in its turn. */
  edit(edit: ConfigEdit, progress: Progress): Promise<ConfigPlan>;
  /** Called when the logs of this process were reopened. */
  reopened(progress: Progress): Promise<void>;
  /** Prepares the next process, in its turn. */
  prepare(next: NextServerProcess, progress: Progress): Promise<void>;
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

  change(kind: ModuleChange, name: string, host: string | undefined, requester: Requester): ChangeInProgress {
    const made = this.changes.make({ ...requester, what: changeText(kind, name, host) }, (progress) =>
      this.#deps.change(kind, name, host, progress),
    );
    // The program and the file watch handle the result themselves, so it is not logged.
    if (requester.by !== "program" && requester.by !== "file watch")
      void made.inForce.then((change) => this.#logResult(change));
    return made;
  }

  plan(): Promise<ConfigPlan> {
    return this.#deps.plan();
  }

  apply(requester: Requester): ChangeInProgress {
    return this.changes.make({ ...requester, what: applyText }, (progress) => this.#deps.apply(progress));
  }

  readonly config: ServerDeps["config"] = {
    options: () => optionStates(this.#deps.host.config, this.#deps.parts()?.waiting),
    file: () => readConfigFile(this.#deps.host.config.file),
    check: (text) => this.#deps.check({ file: "config", text }),
    save: (edit, requester) => this.#edit(editText, { file: "config", ...edit }, requester),
  };

  readonly installed: ServerDeps["installed"] = {
    file: () => readLockFile(this.#deps.host.config.directory),
    check: (text) => this.#deps.check({ file: "lock", text }),
    save: (what, edit, requester) => this.#edit(what, { file: "lock", ...edit }, requester),
  };

  #edit(what: string, edit: ConfigEdit, requester: Requester): ChangeInProgress {
    return this.changes.make({ ...requester, what }, (progress) => this.#deps.edit(edit, progress));
  }

  handOver(next: NextServerProcess, requester: Requester): ChangeInProgress {
    const made = this.changes.make({ ...requester, what: prepareText }, (progress) =>
      this.#deps.prepare(next, progress),
    );
    void made.inForce.then((change) => this.#logResult(change));
    return made;
  }

  async handedOver(by: string, error: unknown): Promise<void> {
    const work = error === undefined ? Promise.resolve() : Promise.reject(error);
    await this.changes.make({ by, what: handOverText }, () => work).inForce;
  }

  reopenLogs(requester: Requester): ChangeInProgress {
    return this.changes.make({ ...requester, what: reopenText }, async (progress) => {
      // Modules reopen their logs first, so that their failures still reach the host's log.
      this.#deps.announce("logs-reopened", {});
      this.#deps.log().reopen();
      await this.#deps.reopened(progress);
    });
  }

  stop(timeout: number | undefined, requester: Requester): Change {
    const { host } = this.#deps;
    const change = this.changes.note({ ...requester, what: "stop" });
    void host.stop(timeout === undefined ? {} : { timeout }).catch((error: unknown) => host.report(error));
    return change;
  }

  readonly tokens: ServerDeps["tokens"] = {
    list: () => this.#tokens.list(),
    metrics: () => this.#tokens.metrics(),
    scopes: () => this.#tokens.scopes(),
    create: (wanted, by) => this.#tokens.create(wanted, by),
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

  follow(event: string, listener: (data: never) => void, owner: string): () => void {
    return this.#deps.bus.add(event, listener, 0, "*", owner);
  }

  followLog(listener: (line: LogLine) => void): () => void {
    return this.#deps.log().follow(listener);
  }

  recentLog(): readonly LogLine[] {
    return this.#deps.log().recent();
  }

  async audit(filter: AuditFilter | undefined): Promise<AuditPage> {
    await this.recorded();
    return auditPage(this.#auditPath, filter);
  }

  /** Waits until all changes that have ended are on disk. */
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
    const audited = host.modules().filter((state) => state.is_audited === true);
    return [
      ...audited.map(({ name }) => `The module ${name} is not restricted: modules.${name}.audit lets everything pass`),
      ...failed.map(({ name, note }) => `The module ${name} is not loaded: ${note ?? "it has failed"}`),
      ...troubled.map(({ name, note }) => `The module ${name}: ${note}`),
      ...unknown.map(unknownMessage),
      ...expiring(this.#deps.parts()?.certificates),
      ...notIssued(this.certificates()),
      ...(this.#deps.parts()?.waiting ?? []).map((name) => `A new value of ${name} waits for the next start`),
      ...undeclared(this.#deps.parts()?.tokens),
      ...fullDisk(dataFolder(host.config)),
      ...(this.#audit?.isFailing === true ? ["Changes are not recorded: the audit file cannot be written"] : []),
    ];
  }

  #logResult({ what, by, result, error }: Change): void {
    const { log } = this.#deps.host;
    if (result === "done") log.info("%s, requested by %s: done", what, by);
    else log.warn("%s, requested by %s: %s: %s", what, by, result, error?.message);
  }

  #over(change: Change): void {
    const { host } = this.#deps;
    this.#deps.announce("server-changed", change);
    if (!this.#deps.isAudited() || this.#deps.parts() === undefined) return;
    this.#audit ??= new AuditFile(this.#auditPath, (reason) =>
      host.log.error("Cannot write the audit file, so changes are not recorded: %s", reason),
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
    return [`${authority} issued no certificate for ${name}: ${error}. The next attempt is at ${next_try}`];
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

function undeclared(tokens: HostParts["tokens"] | undefined): string[] {
  return [...(tokens?.undeclared() ?? [])].map(
    ([name, scopes]) =>
      `Scopes of the token ${name} grant nothing, because no loaded module declares them: ${scopes.join(", ")}`,
  );
}

/**
 * Minimum number of free bytes: the server writes small files, such as those of tokens and changes.
 */
const MIN_FREE_BYTES = 1024 * 1024;

/** A data folder that does not exist yet causes no warning. */
function fullDisk(folder: string): string[] {
  const found = attempt(() => statfsSync(folder));
  if (found === undefined || found.bavail * found.bsize >= MIN_FREE_BYTES) return [];
  return [`The disk of the data folder ${folder} is full: tokens, changes and certificates cannot be written`];
}
