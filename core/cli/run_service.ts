/** The server that `modhost run` runs: a host, and, where another process could not go on in its place, the host after it. */

import type { ProcessAct } from "../host/types.ts";
import type { Handed, Host, HostOptions } from "../host.ts";
import type { Progress } from "../operations/change.ts";
import type { Successor } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import type { Former } from "./handover/former.ts";
import { prepare } from "./handover/prepare.ts";
import { SuccessorProcess, sendable } from "./handover/successor.ts";
import type { Output } from "./output.ts";
import type { Service } from "./serve.ts";

/** Milliseconds. */
const LOOK_MS = 100;

export interface RunServiceDeps {
  /** Makes a host that has not been started. */
  make(more: Pick<HostOptions, "sockets" | "states" | "successor">): Host;
  /** A host serves. */
  started(host: Host): Promise<void>;
  /** It begins to be handed over. */
  leaving(): void;
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  /** The process in whose place this one goes on. */
  readonly former: Former | undefined;
}

export class RunService implements Service {
  host: Host;
  /** Who stops it, for the record. */
  by: string | undefined;
  readonly #deps: RunServiceDeps;
  readonly #over = Promise.withResolvers<void>();
  #successor: SuccessorProcess | undefined;
  #isStopping = false;
  /** The host stops for the one that comes next, and for nobody else. */
  #isHandingOver = false;

  /** `given`: what the process was started with. */
  constructor(deps: RunServiceDeps, given: Pick<HostOptions, "sockets" | "states">) {
    this.#deps = deps;
    this.host = this.#make(given);
  }

  get ended(): Promise<void> {
    return this.#over.promise;
  }

  async start(): Promise<void> {
    const { former, started } = this.#deps;
    try {
      await this.#start();
    } catch (error) {
      former?.failed(error);
      throw error;
    }
    if (this.host.state === "running") await started(this.host);
    await former?.running(this.host);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#successor?.end();
    // Who ends a running server is on record; without a signal it was an exception that nobody caught.
    const asked = this.by ?? (this.host.state === "running" ? "uncaught exception" : undefined);
    await this.host.stop(asked === undefined ? {} : { by: asked });
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
      this.host.log.error("The process ends without a drain: %s", stackOf(act.called));
    return refusal;
  }

  #make(given: Pick<HostOptions, "sockets" | "states">): Host {
    return this.#deps.make({ ...given, successor: (wanted, progress) => this.#prepare(wanted, progress) });
  }

  async #start(): Promise<void> {
    const { host } = this;
    void host.ended.then(() => {
      if (!this.#isHandingOver) this.#over.resolve();
    });
    await host.start();
  }

  async #prepare(wanted: Successor, progress: Progress): Promise<void> {
    const successor = new SuccessorProcess(wanted, this.#deps.env);
    this.#successor = successor;
    // Whoever stops the server does not wait for another one.
    const watching = setInterval(() => {
      if (this.host.state !== "running") void successor.end();
    }, LOOK_MS);
    try {
      await prepare(this.host, successor, wanted, progress);
    } catch (error) {
      this.#successor = undefined;
      await successor.end();
      throw new ModhostError("NOT_HANDED_OVER", { reason: reasonOf(error) }, { cause: error });
    } finally {
      clearInterval(watching);
    }
    // Begun when the change is on record, and its answer on the way.
    setImmediate(() => void this.#handOver(successor).catch((error: unknown) => this.#over.reject(error)));
  }

  async #handOver(successor: SuccessorProcess): Promise<void> {
    if (this.#isStopping || this.host.state !== "running") return successor.end();
    this.#isHandingOver = true;
    const { output, leaving } = this.#deps;
    const begun = performance.now();
    leaving();
    output.show({ event: "handing_over", pid: successor.pid }, () => `\nHanding over to process ${successor.pid}.`);
    const left: string[] = [];
    const { ports, states } = await this.host.handOver();
    const handed = { ports, states: sendable(states, (key) => left.push(key)) };
    try {
      await successor.begin(handed);
    } catch (error) {
      await successor.end();
      await this.#goOn(handed, error);
      return;
    }
    await successor.give(handed);
    this.#successor = undefined;
    const seconds = Math.round(performance.now() - begun) / 1000;
    output.show(
      { event: "handed_over", pid: successor.pid, seconds, not_carried: left },
      () => `Process ${successor.pid} serves; this one ends.`,
    );
    this.#over.resolve();
  }

  /** Another host in this process, with what the first has left. */
  async #goOn(handed: Handed, error: unknown): Promise<void> {
    this.#successor = undefined;
    this.#isHandingOver = false;
    if (this.#isStopping) return this.#over.resolve();
    this.host = this.#make({ sockets: handed.ports, states: handed.states });
    await this.#start();
    this.host.log.error("The other process does not serve, and this one goes on: %s", reasonOf(error));
    await this.#deps.started(this.host);
  }
}
