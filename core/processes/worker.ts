/** The worker's side of the channel to the supervisor. */
import type { Host, ReplicatedChange } from "../host.ts";
import type { InlineModule } from "../inline_modules.ts";
import { closeHandle, IpcChannel, type IpcPeer, parentProcess } from "../relay/ipc_channel.ts";
import type { Module } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { type Begin, type ServerState, WORKER_VARIABLE } from "./messages.ts";
import { Primary } from "./primary.ts";
import { RequestForwarder } from "./request_forwarder.ts";
import type { Role } from "./role.ts";
import { Secondary } from "./secondary.ts";

/** The functions of the program that the supervisor calls. */
export interface WorkerProgram {
  host(): Host;
  /** Applies the configuration, and reports the result. */
  reload(): Promise<void>;
  reopen(): Promise<void>;
  /** Ends the process. `signal` is the one that stops the server. */
  stop(signal?: string): void;
}

/** Returns this process as a worker if a supervisor has started it. */
export function workerOf(env: NodeJS.ProcessEnv): Worker | undefined {
  const number = Number(env[WORKER_VARIABLE]);
  if (env[WORKER_VARIABLE] === undefined || process.send === undefined) return undefined;
  delete env[WORKER_VARIABLE];
  const supervisor = parentProcess();
  // Libraries that find `process.send` post to the parent process. The channel belongs to the
  // supervisor alone, and modules should not notice that there are several processes.
  delete (process as { send?: unknown }).send;
  return new Worker(number, supervisor);
}

/** Milliseconds between two checks whether the channel is still open. */
const CHECK_MS = 1000;

/** The role of this process, once the supervisor has assigned it. */
interface Assumed {
  readonly begin: Begin;
  readonly role: Role;
  readonly forwarder: RequestForwarder;
}

export class Worker {
  readonly number: number;
  readonly supervisor: IpcChannel;
  readonly #peer: IpcPeer;
  /** Functions that the supervisor may call. The role adds its own. */
  readonly #handlers: Record<string, (...values: never[]) => unknown>;
  readonly #begun = Promise.withResolvers<Assumed>();
  readonly #running = Promise.withResolvers<void>();
  #assumed: Assumed | undefined;
  #program: WorkerProgram | undefined;
  readonly #checking: NodeJS.Timeout;
  #isCutOff = false;
  /** Set when the process was requested to end before its program was attached. */
  #stopped: { readonly signal: string | undefined } | undefined;

  constructor(number: number, peer: IpcPeer) {
    this.number = number;
    this.#peer = peer;
    this.#handlers = {
      begin: (begin: Begin) => this.#assume(begin),
      stop: (signal: string | undefined) => this.#stop(signal),
      ping: () => undefined,
      reload: () => this.#program?.reload(),
      reopen: () => this.#program?.reopen(),
      change: (change: ReplicatedChange) => this.#make(change),
      log: (line: string, from: number | undefined) => this.#program?.host().shared.relayLog(line, from),
    };
    this.supervisor = new IpcChannel(peer, this.#handlers, (connection) => {
      if (this.#assumed === undefined) closeHandle(connection.handle);
      else this.#assumed.forwarder.takeConnection(connection);
    });
    process.on("disconnect", () => this.#cutOff());
    // Node.js emits no `disconnect` while a connection is being handed over.
    this.#checking = setInterval(() => {
      if (!peer.connected) this.#cutOff();
    }, CHECK_MS).unref();
    this.#begun.promise.catch(() => undefined);
  }

  /** Takes the role that the supervisor assigns. Resolves when this process serves. */
  #assume(begin: Begin): Promise<void> {
    const deps = { supervisor: this.supervisor, begin, host: () => this.#program?.host() };
    const role: Role = this.isPrimary ? new Primary(deps) : new Secondary(deps);
    const forwarder = new RequestForwarder(deps, () => role.mounted?.());
    Object.assign(this.#handlers, role.handlers, {
      server(state: ServerState) {
        forwarder.use(state);
        role.use?.(state);
      },
    });
    this.#assumed = { begin, role, forwarder };
    this.#begun.resolve(this.#assumed);
    return this.#running.promise;
  }

  /** Ends this process when the supervisor has gone, because nothing would control it. */
  #cutOff(): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    clearInterval(this.#checking);
    const error = new Error("the supervisor has gone");
    this.supervisor.end(error);
    this.#begun.reject(error);
    // If code in this process has closed the channel, the supervisor still runs and has to start
    // another process. Exit code 0 would mean that the server should stop.
    process.once("exit", () => {
      process.exitCode = 1;
    });
    this.#stop();
  }

  /** Stops the program, or remembers the request until the program is attached. */
  #stop(signal?: string): void {
    if (this.#program === undefined) this.#stopped = { signal };
    else this.#program.stop(signal);
  }

  get isPrimary(): boolean {
    return this.number === 1;
  }

  /** Waits for what the host starts with. @throws {Error} when the supervisor has gone */
  async begin() {
    const { begin, role, forwarder } = await this.#begun.promise;
    const load = (module: Module) => {
      module.add_item("http-siblings", forwarder);
      role.join(module);
    };
    const module: InlineModule = { name: "workers", global: true, load };
    return { siblings: role.siblings, module, ports: this.supervisor.takeAll(begin.ports) };
  }

  /** Sets the program that the supervisor controls from now on. */
  attach(program: WorkerProgram): void {
    this.#program = program;
    const { signal } = this.#stopped ?? {};
    // A stop that was requested before must run after the start has begun, as for a signal during
    // the start.
    if (this.#stopped !== undefined || !this.#peer.connected) setImmediate(() => program.stop(signal));
  }

  /** Called when the host serves. Repeats the changes that were made before this process began. */
  async running(): Promise<void> {
    const { begin, role, forwarder } = await this.#begun.promise;
    for (const change of begin.changes) {
      await this.#make(change).catch((error: unknown) => {
        this.#program?.host().log.warn("Cannot replay an earlier module change in this process: %s", reasonOf(error));
      });
    }
    await forwarder.open();
    role.running();
    this.#running.resolve();
  }

  async close(): Promise<void> {
    this.#assumed?.role.close?.();
    await this.#assumed?.forwarder.close();
  }

  /** Repeats a change of the primary in this process. */
  async #make(change: ReplicatedChange): Promise<void> {
    const host = this.#program?.host();
    if (host === undefined) return;
    if (!("name" in change)) {
      await (change.kind === "apply" ? host.apply({ by: PRIMARY }) : host.reopenLogs(PRIMARY));
      return;
    }
    const { kind, name, host: at } = change;
    if (this.#assumed?.role.siblings.isElsewhere?.(name) === true) return;
    await host[kind](name, at).catch((error: unknown) => {
      if (!isDone(kind, error)) throw error;
    });
  }
}

/** The name of the primary in the logs of the secondaries. */
const PRIMARY = "process 1";

/**
 * Whether the error reports that this process has made the change already, such as by quarantine.
 */
function isDone(kind: ReplicatedChange["kind"], error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return (kind === "load" && code === "MODULE_ALREADY_LOADED") || (kind === "unload" && code === "MODULE_NOT_LOADED");
}
