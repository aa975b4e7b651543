/** A worker thread of an isolated module, and how long it may live. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { type Config, isOwnVariable } from "../config/index.ts";
import { appName } from "../http/routing/app_urls.ts";
import { failure, type InstanceOwner } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import type { ModuleSource } from "../module/locate.ts";
import { Channel, type MessageEndpoint } from "../relay/channel.ts";
import { watchLiveness } from "../relay/liveness.ts";
import type { ListeningPort, ModuleState, OptionDeclaration, OptionDeclarations } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { Described, WorkerCode, WorkerTask } from "./messages.ts";

export interface IsolationDeps {
  config(): Config;
  hostsOf(name: string): readonly string[];
  listening(): readonly ListeningPort[];
  states(): readonly ModuleState[];
  readonly serves: boolean;
  /** Seconds. */
  loadTimeout(): number;
  grace(): number;
  /** Called when the worker of an instance has ended without a request to do so. */
  ended(owner: InstanceOwner, reason: string): void;
}

const program = new URL(import.meta.url.endsWith(".ts") ? "./entry.ts" : "./entry.js", import.meta.url);

/** Bytes that a worker may use. */
export function heapOf(deps: IsolationDeps): number {
  return Number(deps.config().value("isolated_heap"));
}

/** Whether any module may read an option: those of the host and of HTTP, without their secrets. */
function isPublic({ owner, secret }: OptionDeclaration & { readonly owner: string }): boolean {
  return (owner === "core" || owner === "http") && secret === undefined;
}

/**
 * Whether an undeclared option belongs to a module by its name. Others may be secrets of modules
 * that are not loaded.
 */
function isNamedFor(module: string, option: string): boolean {
  return [module, appName(module)].some((name) => option === name || option.startsWith(`${name}_`));
}

/**
 * Returns the environment variables of a worker. Variables that set options are left out: it gets
 * the options that it may read.
 */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwnVariable(name)));
}

/** Returns what an instance is made from. `options`: those that the module declares. */
export function taskOf(
  name: string,
  options: OptionDeclarations,
  deps: IsolationDeps,
  own: Pick<WorkerTask, "host" | "reloading" | "depends">,
): WorkerTask {
  const config = deps.config();
  const all = config.declarations();
  const isHanded = (option: string) => {
    if (option === "hosts") return false;
    if (Object.hasOwn(options, option)) return true;
    const declared = all.get(option);
    return declared === undefined ? isNamedFor(name, option) : isPublic(declared);
  };
  const declarations: Record<string, Record<string, object>> = {};
  for (const [option, { owner, ...declaration }] of all) {
    if (owner !== "core" && isHanded(option)) (declarations[owner] ??= {})[option] = declaration;
  }
  return {
    ...own,
    hosts: deps.hostsOf(name),
    config: config.sources(isHanded),
    declarations: declarations as unknown as WorkerTask["declarations"],
    loadTimeout: deps.loadTimeout(),
    listening: deps.listening(),
    states: deps.states(),
    serves: deps.serves,
  };
}

/** Events of a worker thread. */
export interface ThreadEvents {
  ended(reason: string): void;
  /** Its code posts messages to the parent thread. */
  posted(): void;
}

/**
 * Milliseconds for which messages of one worker are handled before other work of the host gets its
 * turn.
 */
const SLICE_MS = 10;

export class WorkerThread {
  readonly channel: Channel;
  readonly #source: ModuleSource & { readonly file: string };
  readonly #deps: IsolationDeps;
  readonly #worker: Worker;
  /** Functions that the worker may call once an instance runs in it. */
  readonly #handlers: Record<string, (...values: never[]) => unknown> = {};
  readonly #port: MessagePort;
  /** Holds 1 from the time that the worker has rung the bell until its messages are handled. */
  readonly #isRung = new Int32Array(new SharedArrayBuffer(4));
  #receive: (message: unknown) => void = () => undefined;
  #events: ThreadEvents = { ended: () => undefined, posted: () => undefined };
  /**
   * Whether the module's code or a library has posted to the parent thread, which ignores such
   * messages.
   */
  isPosting = false;
  #reason: string | undefined;
  isAlive = true;

  constructor(source: ModuleSource & { readonly file: string }, deps: IsolationDeps) {
    const { name, file, directory, root } = source;
    // Not `parentPort`, because libraries post to it and listen to it.
    const { port1, port2 } = new MessageChannel();
    const { port1: bell1, port2: bell2 } = new MessageChannel();
    const workerData: WorkerCode = {
      source: { name, file, directory, root },
      loadTimeout: deps.loadTimeout(),
      port: port2,
      bell: bell2,
      isRung: this.#isRung,
    };
    this.#source = source;
    this.#deps = deps;
    this.#port = port1;
    this.#worker = new Worker(program, {
      workerData,
      transferList: [port2, bell2],
      env: environment(),
      name: `modhost ${name}`,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapOf(deps) / 2 ** 20) },
    });
    const port: MessageEndpoint = {
      postMessage: (message) => port1.postMessage(message),
      on: (event, listener) => {
        this.#receive = listener;
        bell1.on(event, () => void this.#handle());
      },
    };
    this.channel = new Channel(port, this.#handlers);
    this.#worker.on("message", () => this.#posted());
    this.#worker.on("error", (error: unknown) => {
      // A worker can throw any value.
      this.#reason ??= reasonOf(error);
    });
    this.#worker.on("exit", (code) => void this.#exited(code));
    this.#worker.unref();
    bell1.unref();
  }

  /**
   * Handles the messages that wait, in slices. A listener of the port would get all of them in one
   * turn of the event loop, and a module can send hundreds of thousands.
   */
  async #handle(): Promise<void> {
    let until = performance.now() + SLICE_MS;
    Atomics.store(this.#isRung, 0, 0);
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port)) {
      this.#receive(next.message);
      if (performance.now() < until) continue;
      await nextTurn();
      until = performance.now() + SLICE_MS;
    }
  }

  #posted(): void {
    this.isPosting = true;
    this.#events.posted();
  }

  /**
   * Evaluates the file.
   * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID
   */
  async describe(): Promise<Described> {
    const seconds = this.#deps.loadTimeout();
    try {
      return (await new Deadline(seconds).result(this.channel.call("describe"), "load_timeout")) as Described;
    } catch (error) {
      await this.end();
      throw failure(this.#source, "being imported", error);
    }
  }

  /** Sets the functions that the worker may call, and who gets its events. */
  serve(handlers: Record<string, (...values: never[]) => unknown>, events: ThreadEvents): void {
    Object.assign(this.#handlers, handlers);
    this.#events = events;
  }

  /**
   * Ends the worker when it does not respond for `silence` seconds, or uses more than `most` bytes
   * outside of its heap.
   */
  watch(silence: number, most: number): void {
    const end = watchLiveness(this.channel, silence, {
      silent: (seconds) => this.#terminate(`it did not answer for ${Math.ceil(seconds)} s`),
      alive: (bytes) => {
        if (Number(bytes) > most)
          this.#terminate(`it used ${bytes} bytes outside of its heap, more than isolated_heap`);
      },
    });
    this.#worker.once("exit", end);
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #terminate(reason: string): void {
    this.#reason = reason;
    void this.#worker.terminate();
  }

  async #exited(code: number): Promise<void> {
    this.isAlive = false;
    // Its last messages may not have been delivered yet.
    await this.#handle();
    const reason = `its worker ended: ${this.#reason ?? `process.exit(${code})`}`;
    this.channel.end(new ModhostError("ISOLATED_ENDED", { name: this.#source.name, reason }));
    this.#events.ended(reason);
  }
}
