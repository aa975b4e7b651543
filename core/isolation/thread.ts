/** A worker thread of an isolated module. It is ended when it hangs or uses too much memory. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { Channel, type MessageEndpoint } from "../relay/channel.ts";
import { reasonOf } from "../util/errors.ts";
import { sizeText } from "../util/size.ts";
import type { SourceFile, WorkerCode } from "./messages.ts";
import { ModuleRunner } from "./runner.ts";
import { environment, heapOf, type IsolatedRights, type IsolationDeps, limitsFor } from "./task.ts";

const program = new URL(import.meta.url.endsWith(".ts") ? "./thread_entry.ts" : "./thread_entry.js", import.meta.url);

/**
 * Milliseconds for which messages of one worker are handled before other work of the host gets its
 * turn.
 */
const SLICE_MS = 10;

export class WorkerThread extends ModuleRunner {
  readonly channel: Channel;
  readonly ended: Promise<string>;
  override readonly posted: Promise<void>;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  /** Contains 1 from the time that the worker has rung the bell until its messages are handled. */
  readonly #isRung = new Int32Array(new SharedArrayBuffer(4));
  /** Bytes that it may use outside of its heap, and the option that says so. */
  readonly #outside: number;
  readonly #option: string;
  #receive: (message: unknown) => void = () => undefined;
  #reason: string | undefined;

  constructor(source: SourceFile, deps: IsolationDeps, isolated: IsolatedRights) {
    const { loadTimeout } = deps.context;
    const limits = limitsFor(isolated.rights);
    super("worker", source, deps, limits);
    const heap = heapOf(deps, isolated);
    this.#outside = limits === undefined ? heap : limits.memory - heap;
    this.#option = limits === undefined ? "isolated_heap" : "limits.memory";
    // Not `parentPort`, because libraries post to it and listen to it.
    const { port1, port2 } = new MessageChannel();
    const { port1: bell1, port2: bell2 } = new MessageChannel();
    this.#port = port1;
    const workerData: WorkerCode = {
      source: this.source,
      loadTimeout,
      port: port2,
      bell: bell2,
      isRung: this.#isRung,
    };
    const worker = new Worker(program, {
      workerData,
      transferList: [port2, bell2],
      env: environment(isolated),
      name: `modhost ${source.name}`,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heap / 2 ** 20) },
    });
    this.#worker = worker;
    const port: MessageEndpoint = {
      postMessage: (message) => port1.postMessage(message),
      on: (event, listener) => {
        this.#receive = listener;
        bell1.on(event, () => void this.#handle());
      },
    };
    this.channel = new Channel(port, this.handlers);
    this.posted = new Promise((resolve) => void worker.once("message", () => resolve()));
    // A worker can throw any value.
    worker.on("error", (error: unknown) => {
      this.#reason ??= reasonOf(error);
    });
    this.ended = new Promise((resolve) => void worker.once("exit", (code) => resolve(this.#exited(code))));
    worker.unref();
    bell1.unref();
  }

  /** Resolves when the worker has ended. `reason` replaces the one that the worker itself gives. */
  async end(reason?: string): Promise<void> {
    this.#reason = reason ?? this.#reason;
    await this.#worker.terminate();
  }

  /** The worker reports what it uses outside of its heap, which Node.js bounds itself. */
  protected override responded(value: unknown): void {
    super.responded(value);
    const bytes = Number(value);
    if (bytes <= this.#outside) return;
    void this.end(`it used ${sizeText(bytes)} outside of its heap, more than ${this.#option} allows`);
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

  async #exited(code: number): Promise<string> {
    this.isAlive = false;
    // The last messages of the thread may not have been delivered yet.
    await this.#handle();
    return this.finish(this.#reason ?? `process.exit(${code})`);
  }
}
