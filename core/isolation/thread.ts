/** A worker thread of an isolated module, and how long it may live. */
import { Worker } from "node:worker_threads";
import { type Config, environmentPrefix } from "../config/index.ts";
import { appName } from "../http/app_urls.ts";
import { failure, type InstanceOwner } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import type { ModuleSource } from "../module/locate.ts";
import type { ListeningPort, ModuleState, OptionDeclaration, OptionDeclarations } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { Channel, type Port } from "./channel.ts";
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
  /** The worker of an instance has ended, though nobody asked for it. */
  ended(owner: InstanceOwner, reason: string): void;
}

/** A worker is asked for a sign of life so often within the time that it may be silent. */
const PINGS = 4;

const program = new URL(import.meta.url.endsWith(".ts") ? "./entry.ts" : "./entry.js", import.meta.url);

/** Bytes that a worker may use. */
export function heapOf(deps: IsolationDeps): number {
  return Number(deps.config().value("isolated_heap"));
}

/** What any module may read: options of the host and of HTTP but for their secrets. */
function isPublic({ owner, secret }: OptionDeclaration & { readonly owner: string }): boolean {
  return (owner === "core" || owner === "http") && secret === undefined;
}

/** What nobody declares may be a secret of a module that is not loaded: by its name it is meant for this one. */
function isNamedFor(module: string, option: string): boolean {
  return [module, appName(module)].some((name) => option === name || option.startsWith(`${name}_`));
}

/** What a worker sees of the environment: options reach it as far as it may read them. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith(environmentPrefix)));
}

/** What an instance is made from, of all that the host knows. `options`: those that the module declares. */
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

export class WorkerThread {
  readonly channel: Channel;
  readonly #source: ModuleSource & { readonly file: string };
  readonly #deps: IsolationDeps;
  readonly #worker: Worker;
  /** What the worker may ask once an instance runs in it. */
  readonly #handlers: Record<string, (...values: never[]) => unknown> = {};
  #hearEnd: (reason: string) => void = () => undefined;
  #reason: string | undefined;
  isAlive = true;

  constructor(source: ModuleSource & { readonly file: string }, deps: IsolationDeps) {
    const { name, file, directory, root } = source;
    const workerData: WorkerCode = { source: { name, file, directory, root }, loadTimeout: deps.loadTimeout() };
    this.#source = source;
    this.#deps = deps;
    this.#worker = new Worker(program, {
      workerData,
      env: environment(),
      name: `modhost ${name}`,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapOf(deps) / 2 ** 20) },
    });
    this.channel = new Channel(this.#worker as unknown as Port, this.#handlers);
    this.#worker.on("error", (error) => {
      this.#reason ??= error.message;
    });
    this.#worker.on("exit", (code) => this.#exited(code));
    this.#worker.unref();
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

  /** From now on the worker may ask these, and its end is told of. */
  serve(handlers: Record<string, (...values: never[]) => unknown>, ended: (reason: string) => void): void {
    Object.assign(this.#handlers, handlers);
    this.#hearEnd = ended;
  }

  /** Ends the worker when it gives no sign of life for so many seconds, or holds more than so many bytes beside its heap. */
  watch(silence: number, most: number): void {
    let heard = performance.now();
    let asked = heard;
    const ping = () => {
      // Time in which this thread itself was held up is none that the other has been silent.
      const late = performance.now() - asked > (2 * silence * 1000) / PINGS;
      asked = performance.now();
      if (late) heard = Math.max(heard, asked - (silence * 1000) / 2);
      const silent = (asked - heard) / 1000;
      if (silent > silence) this.#terminate(`it did not answer for ${Math.ceil(silent)} s`);
      this.channel.call("ping").then(
        (bytes) => {
          heard = performance.now();
          if (Number(bytes) > most) this.#terminate(`it held ${bytes} bytes beside its heap, over isolated_heap`);
        },
        () => undefined,
      );
    };
    const timer = setInterval(ping, (silence * 1000) / PINGS).unref();
    this.#worker.once("exit", () => clearInterval(timer));
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #terminate(reason: string): void {
    this.#reason = reason;
    void this.#worker.terminate();
  }

  #exited(code: number): void {
    this.isAlive = false;
    const reason = `its worker ended: ${this.#reason ?? `process.exit(${code})`}`;
    this.channel.end(new ModhostError("ISOLATED_ENDED", { name: this.#source.name, reason }));
    this.#hearEnd(reason);
  }
}
