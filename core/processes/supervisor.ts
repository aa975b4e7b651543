/**
 * Keeps the processes of one server running: starts them, replaces those that end, and keeps their
 * listening sockets open. Clients that connect while no process listens wait in the queue of the
 * system, so that none is lost.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReplicatedChange, SiblingState } from "../host.ts";
import { type Handlers, within } from "../relay/channel.ts";
import { ConnectionHandoff } from "../relay/connection_handoff.ts";
import { randomToken } from "../relay/inner_request.ts";
import type { IpcChannel } from "../relay/ipc_channel.ts";
import type { Ended } from "../relay/ipc_child.ts";
import type { LogLevel } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { ChangeLog } from "./change_log.ts";
import type { PortFacts, PrimaryScope, ServerState } from "./messages.ts";
import { RetainedPorts } from "./retained_ports.ts";
import { WorkerProcess, type WorkerProcessDeps } from "./worker_process.ts";

/**
 * Milliseconds before a process that ended soon after its start is replaced. The pause is doubled
 * each time.
 */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 30_000;
/** Seconds to wait for each process when data of all processes are gathered. */
const GATHER_SECONDS = 2;
/** A process that ends after this many milliseconds is replaced at once. */
const STEADY_MS = 60_000;

/** `log` writes a line of the log while the primary cannot write it. */
export interface SupervisorDeps extends Omit<WorkerProcessDeps, "handlers" | "onConnection"> {
  readonly count: number;
  /** Called when all processes serve. */
  started(): Promise<void> | void;
}

/** A number of the server. A process that ends is replaced by one of the same number. */
class Slot {
  readonly number: number;
  process: WorkerProcess | undefined;
  /** Connections on their way to the process from another one. */
  readonly handoff = new ConnectionHandoff(() => this.running?.channel);
  began = 0;
  /** How many processes in a row have ended soon after their start. */
  failures = 0;
  pause: NodeJS.Timeout | undefined;

  constructor(number: number) {
    this.number = number;
  }

  /** The process while it serves. */
  get running(): WorkerProcess | undefined {
    return this.process?.isRunning === true ? this.process : undefined;
  }
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #primary = new Slot(1);
  readonly #secondaries: readonly Slot[];
  readonly #folder = mkdtempSync(join(tmpdir(), "modhost-"));
  readonly #ports = new RetainedPorts();
  readonly #changes = new ChangeLog();
  readonly #token = randomToken();
  readonly #over = Promise.withResolvers<void>();
  #scope: PrimaryScope | undefined;
  #isStopping = false;
  #hasStarted = false;
  /** The signal that stops the server. */
  signal: string | undefined;
  /** The exit code with which the primary ended the server. */
  code = 0;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#secondaries = Array.from({ length: deps.count - 1 }, (_, at) => new Slot(at + 2));
  }

  get #slots(): readonly Slot[] {
    return [this.#primary, ...this.#secondaries];
  }

  /** Resolves when the server has ended by itself. */
  get ended(): Promise<void> {
    return this.#over.promise;
  }

  async start(): Promise<void> {
    try {
      await this.#begin(this.#primary);
    } catch {
      return; // The primary has logged the reason, and the server has ended with it.
    }
    this.#hasStarted = true;
    await Promise.allSettled(this.#secondaries.map((slot) => this.#begin(slot)));
    if (!this.#isStopping) await this.#deps.started();
  }

  /** Stops the secondaries before the primary, because their requests in flight may need it. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const { pause } of this.#slots) clearTimeout(pause);
    // The sockets now stay open only while a process listens on them. That process serves the
    // queued connections. Later clients are refused at once, and do not wait in a queue that nobody
    // empties.
    this.#ports.close();
    await Promise.all(this.#secondaries.map(({ process }) => process?.stop(this.signal)));
    await this.#primary.process?.stop(this.signal);
    await Promise.all(this.#slots.map(({ handoff }) => handoff.close()));
    rmSync(this.#folder, { recursive: true, force: true });
    this.#over.resolve();
  }

  /** Kills all processes. */
  kill(): void {
    this.#isStopping = true;
    for (const { process } of this.#slots) process?.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Requests a change from the primary, which then makes the other processes do the same. */
  async ask(what: "reload" | "reopen"): Promise<void> {
    await this.#primary.process?.channel.call(what).catch((error: unknown) => this.#log("error", reasonOf(error)));
  }

  report(error: unknown): void {
    this.#log("error", `The supervisor: ${error instanceof Error ? error.stack : error}`);
  }

  /** The secondaries that serve, in order. */
  #serving(): WorkerProcess[] {
    return this.#secondaries.flatMap(({ running }) => running ?? []);
  }

  async #begin(slot: Slot): Promise<void> {
    const { number } = slot;
    const child = new WorkerProcess(number, {
      ...this.#deps,
      sockets: number === 1 ? this.#deps.sockets : [],
      handlers: this.#handlers(number, () => child.channel),
      onConnection: (connection) => this.#slots[connection.to - 1]?.handoff.take(connection),
      log: (level, text) => this.#log(level, text),
    });
    slot.process = child;
    slot.began = performance.now();
    void child.ended.then((ended) => this.#ended(slot, child, ended));
    await child.begin({
      number,
      count: this.#deps.count,
      folder: this.#folder,
      token: this.#token,
      changes: this.#changes.all(),
      ports: number === 1 ? this.#ports.giveAll(child.channel) : [],
      ...this.#state,
    });
    this.#share();
    slot.handoff.flush();
    if (number > 1) await this.#catchUp(child);
  }

  get #state(): ServerState {
    const serving = this.#slots.filter(({ running }) => running?.isLeaving === false);
    return { scope: this.#scope, serving: serving.map(({ number }) => number) };
  }

  /** Sends the state of the server to all processes. */
  #share(): void {
    const state = this.#state;
    for (const { process } of this.#slots) process?.channel.notify("server", state);
  }

  /** Makes the changes in a process that were made in the others while it started. */
  async #catchUp(child: WorkerProcess): Promise<void> {
    try {
      for (const change of child.missed.splice(0)) await child.channel.call("change", change);
    } catch (error) {
      // The next process starts with these changes.
      if (!child.isRunning) return;
      this.#log("warn", `Process ${child.number} is replaced: ${reasonOf(error)}`);
      await this.#replace(child);
    }
  }

  /** Ends a process, so that another one replaces it. Nothing more is forwarded to it. */
  async #replace(process: WorkerProcess): Promise<void> {
    const stopped = process.stop();
    this.#share();
    await stopped;
  }

  #ended(slot: Slot, child: WorkerProcess, { how, code }: Ended): void {
    if (slot.process !== child) return;
    slot.process = undefined;
    if (this.#isStopping) return;
    this.#share();
    const isPrimary = slot.number === 1;
    if (!isPrimary) this.#primary.process?.channel.notify("left", slot.number);
    // The server ends with its primary if that does not start or was requested to stop.
    if (isPrimary && (!this.#hasStarted || (code === 0 && !child.isLeaving))) {
      this.code = code ?? 1;
      this.#over.resolve();
      return;
    }
    slot.failures = performance.now() - slot.began < STEADY_MS ? slot.failures + 1 : 0;
    const pause = slot.failures < 2 ? 0 : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (slot.failures - 2));
    const later = pause === 0 ? "another one replaces it" : `another one replaces it in ${pause / 1000} s`;
    if (!child.isLeaving)
      this.#log("error", `Process ${slot.number} of ${this.#deps.count} (${child.pid}) ${how}: ${later}`);
    slot.pause = setTimeout(() => void this.#begin(slot).catch(() => undefined), child.isLeaving ? 0 : pause);
  }

  /** Returns the functions that a process may call. `channel`: the channel to that process. */
  #handlers(number: number, channel: () => IpcChannel): Handlers {
    const log = (line: string) => this.#relay(line, number);
    if (number > 1) {
      return {
        log,
        sockets: (service: string, known: readonly string[]) => this.#ports.give(channel(), service, known),
        state: (state: SiblingState, counted: readonly unknown[]) =>
          this.#primary.process?.channel.notify("sibling", state, counted),
      };
    }
    return {
      log,
      ports: (ports: readonly PortFacts[]) => {
        for (const service of this.#ports.replace(ports, channel())) {
          for (const process of this.#serving()) process.channel.notify("ports", service);
        }
      },
      scope: (scope: PrimaryScope) => {
        this.#scope = scope;
        this.#share();
      },
      replicate: (change: ReplicatedChange) => this.#replicate(change),
      gather: async (what: string) => {
        const late = `no response within ${GATHER_SECONDS} s`;
        const calls = this.#serving().map(({ channel }) => within(GATHER_SECONDS, channel.call(what), late));
        const results = await Promise.allSettled(calls);
        return results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
      },
    };
  }

  /**
   * Makes a change in one secondary after the other. A process that cannot make it is replaced by
   * one that starts with it.
   */
  async #replicate(change: ReplicatedChange): Promise<readonly string[]> {
    this.#changes.add(change);
    const results: string[] = [];
    for (const { process } of this.#secondaries) if (process?.isRunning === false) process.missed.push(change);
    for (const process of this.#serving()) {
      try {
        await process.channel.call("change", change);
        results.push(`process ${process.number} has made the change`);
      } catch (error) {
        if (!process.isRunning) continue; // The next process starts with the change.
        results.push(`process ${process.number} is replaced: ${reasonOf(error)}`);
        await this.#replace(process);
      }
    }
    return results;
  }

  #relay(line: string, from: number): void {
    const primary = this.#primary.running;
    if (primary === undefined) this.#deps.print("stderr", line);
    else primary.channel.notify("log", line, from);
  }

  #log(level: LogLevel, msg: string): void {
    const primary = this.#primary.running;
    if (primary === undefined) this.#deps.log(level, msg);
    else primary.channel.notify("log", JSON.stringify({ level, time: new Date().toISOString(), msg }), undefined);
  }
}
