/**
 * The server of `modhost run`: a host. If a takeover fails, another host in this process replaces
 * it.
 */

import type { ProcessAct } from "../host/types.ts";
import type { Handed, Host, HostOptions } from "../host.ts";
import type { Progress } from "../operations/change.ts";
import type { NextServerProcess } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import type { Output } from "./output.ts";
import type { Service } from "./serve.ts";
import { NextProcess, sendable } from "./takeover/next_process.ts";
import { prepare } from "./takeover/prepare.ts";
import type { PreviousProcess } from "./takeover/previous_process.ts";

/** Milliseconds between two checks of the host's state. */
const LOOK_MS = 100;

export interface RunServiceDeps {
  /** Creates a host without starting it. */
  make(more: Pick<HostOptions, "sockets" | "states" | "prepareNext">): Host;
  /** Called when a host serves. */
  started(host: Host): Promise<void>;
  /** Called when the handover begins. */
  leaving(): void;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  /** The previous server process if this one takes over from it. */
  readonly previous: PreviousProcess | undefined;
}

export class RunService implements Service {
  host: Host;
  /** The requester of the stop, for the record. */
  by: string | undefined;
  readonly #deps: RunServiceDeps;
  readonly #over = Promise.withResolvers<void>();
  #next: NextProcess | undefined;
  #isStopping = false;
  /** Set while the host stops because the next process takes over. */
  #isHandingOver = false;

  /** `given`: the sockets and states that the process was started with. */
  constructor(deps: RunServiceDeps, given: Pick<HostOptions, "sockets" | "states">) {
    this.#deps = deps;
    this.host = this.#make(given);
  }

  get ended(): Promise<void> {
    return this.#over.promise;
  }

  async start(): Promise<void> {
    const { previous, started } = this.#deps;
    try {
      await this.#start();
      previous?.assertNothingLost(this.host);
    } catch (error) {
      previous?.failed(error);
      throw error;
    }
    if (previous !== undefined) await this.host.handedOver(`process ${process.ppid}`);
    if (this.host.state === "running") await started(this.host);
    await previous?.running(this.host);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#next?.end();
    // The record names who ends a running server; without a signal it was an uncaught exception.
    const by = this.by ?? (this.host.state === "running" ? "uncaught exception" : undefined);
    await this.host.stop(by === undefined ? {} : { by: by });
  }

  report(error: unknown): void {
    this.host.report(error);
  }

  contain(error: unknown): boolean {
    return this.host.contain(error);
  }

  refuse(act: ProcessAct): Error | undefined {
    const refusal = this.host.refuse(act);
    if (refusal === undefined && act.ends)
      this.host.log.error("The process exits without draining: %s", stackOf(act.called));
    return refusal;
  }

  #make(given: Pick<HostOptions, "sockets" | "states">): Host {
    return this.#deps.make({ ...given, prepareNext: (wanted, progress) => this.#prepare(wanted, progress) });
  }

  async #start(): Promise<void> {
    const { host } = this;
    void host.ended.then(() => {
      if (!this.#isHandingOver) this.#over.resolve();
    });
    await host.start();
  }

  async #prepare(wanted: NextServerProcess, progress: Progress): Promise<void> {
    const next = new NextProcess(wanted, this.#deps.env);
    this.#next = next;
    // A stop of the server must not wait for the next process.
    const watching = setInterval(() => {
      if (this.host.state !== "running") void next.end();
    }, LOOK_MS);
    try {
      await prepare(this.host, next, wanted, progress);
    } catch (error) {
      this.#next = undefined;
      await next.end();
      throw new ModhostError("NOT_HANDED_OVER", { reason: reasonOf(error) }, { cause: error });
    } finally {
      clearInterval(watching);
    }
    // The handover begins after the change is recorded and its response is being sent.
    setImmediate(() => void this.#handOver(next).catch((error: unknown) => this.#over.reject(error)));
  }

  async #handOver(next: NextProcess): Promise<void> {
    if (this.#isStopping || this.host.state !== "running") return next.end();
    this.#isHandingOver = true;
    const { output, leaving } = this.#deps;
    const begun = performance.now();
    leaving();
    output.show({ event: "handing_over", pid: next.pid }, () => `\nHanding over to process ${next.pid}.`);
    const left: string[] = [];
    const { ports, states } = await this.host.handOver();
    const handed = { ports, states: sendable(states, (key) => left.push(key)) };
    try {
      await next.begin(handed);
    } catch (error) {
      await next.end();
      await this.#goOn(handed, error);
      return;
    }
    await next.give(handed);
    this.#next = undefined;
    const seconds = Math.round(performance.now() - begun) / 1000;
    output.show(
      { event: "handed_over", pid: next.pid, seconds, not_carried: left },
      () => `Process ${next.pid} serves; this one ends.`,
    );
    this.#over.resolve();
  }

  /** Starts another host in this process, with the ports and states of the first one. */
  async #goOn(handed: Handed, error: unknown): Promise<void> {
    this.#next = undefined;
    this.#isHandingOver = false;
    if (this.#isStopping) return this.#over.resolve();
    this.host = this.#make({ sockets: handed.ports, states: handed.states });
    await this.#start();
    await this.host.handedOver(`process ${process.pid}`, error);
    this.host.log.error("The next process failed to take over, so this one keeps serving: %s", reasonOf(error));
    await this.#deps.started(this.host);
  }
}
