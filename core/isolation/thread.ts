/** A worker thread of an isolated module. It is ended when it hangs or uses too much memory. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { failure } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import { Channel, type MessageEndpoint } from "../relay/channel.ts";
import { watchLiveness } from "../relay/liveness.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import type { Described, SourceFile, WorkerCode } from "./messages.ts";
import { heapOf, type IsolationDeps } from "./task.ts";

const program = new URL(import.meta.url.endsWith(".ts") ? "./entry.ts" : "./entry.js", import.meta.url);

/**
 * Milliseconds for which messages of one worker are handled before other work of the host gets its
 * turn.
 */
const SLICE_MS = 10;

export class WorkerThread {
  readonly source: SourceFile;
  readonly channel: Channel;
  /** Resolves to the reason when the worker has ended and its last messages have been handled. */
  readonly ended: Promise<string>;
  /** Resolves when code in the worker posts messages to the parent thread, which ignores them. */
  readonly posted: Promise<void>;
  readonly #worker: Worker;
  readonly #loadTimeout: number;
  /** Functions that the worker may call once an instance runs in it. */
  readonly #handlers: Record<string, (...values: never[]) => unknown> = {};
  readonly #port: MessagePort;
  /** Contains 1 from the time that the worker has rung the bell until its messages are handled. */
  readonly #isRung = new Int32Array(new SharedArrayBuffer(4));
  #receive: (message: unknown) => void = () => undefined;
  #reason: string | undefined;
  isAlive = true;

  constructor({ name, file, directory, root }: SourceFile, deps: IsolationDeps, env: NodeJS.ProcessEnv) {
    // Not `parentPort`, because libraries post to it and listen to it.
    const { port1, port2 } = new MessageChannel();
    const { port1: bell1, port2: bell2 } = new MessageChannel();
    this.source = { name, file, directory, root };
    this.#loadTimeout = deps.context.loadTimeout;
    this.#port = port1;
    const workerData: WorkerCode = {
      source: this.source,
      loadTimeout: this.#loadTimeout,
      port: port2,
      bell: bell2,
      isRung: this.#isRung,
    };
    const worker = new Worker(program, {
      workerData,
      transferList: [port2, bell2],
      env,
      name: `modhost ${name}`,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapOf(deps) / 2 ** 20) },
    });
    this.#worker = worker;
    const port: MessageEndpoint = {
      postMessage: (message) => port1.postMessage(message),
      on: (event, listener) => {
        this.#receive = listener;
        bell1.on(event, () => void this.#handle());
      },
    };
    this.channel = new Channel(port, this.#handlers);
    this.posted = new Promise((resolve) => void worker.once("message", () => resolve()));
    // A worker can throw any value.
    worker.on("error", (error: unknown) => {
      this.#reason ??= reasonOf(error);
    });
    this.ended = new Promise((resolve) => void worker.once("exit", (code) => resolve(this.#exited(code))));
    worker.unref();
    bell1.unref();
  }

  /**
   * Evaluates the file.
   * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID
   */
  async describe(): Promise<Described> {
    try {
      const described = this.channel.call("describe") as Promise<Described>;
      return await new Deadline(this.#loadTimeout).result(described, "load_timeout");
    } catch (error) {
      await this.end();
      throw failure(this.source, "being imported", error);
    }
  }

  /** Sets the functions that the worker may call. */
  serve(handlers: Record<string, (...values: never[]) => unknown>): void {
    Object.assign(this.#handlers, handlers);
  }

  /**
   * Ends the worker when it does not respond for `silence` seconds, or uses more than `most` bytes
   * outside of its heap.
   */
  watch(silence: number, most: number): void {
    const end = watchLiveness(this.channel, silence, {
      silent: (seconds) => void this.end(`it did not respond for ${Math.ceil(seconds)} s`),
      alive: (bytes) => {
        if (Number(bytes) > most) void this.end(`it used ${bytes} bytes outside of its heap, more than isolated_heap`);
      },
    });
    void this.ended.then(end);
  }

  /** Resolves when the worker has ended. `reason` replaces the one that the worker itself gives. */
  async end(reason?: string): Promise<void> {
    this.#reason = reason ?? this.#reason;
    await this.#worker.terminate();
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
    const reason = `its worker ended: ${this.#reason ?? `process.exit(${code})`}`;
    this.channel.end(new ModhostError("ISOLATED_ENDED", { name: this.source.name, reason }));
    return reason;
  }
}
