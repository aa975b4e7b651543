/**
 * Calls on a tree that other hosts change as well. They go in rounds: the tree takes over what
 * others have committed, the calls that were waiting run one after the other, and their changes are
 * committed together. A call whose result could be another one after what was committed meanwhile
 * runs again, in the next round. So all calls of all hosts have the order in which they are in the
 * journal, and nobody sees what is not committed.
 */
import type { SharedLock } from "../../util/async/shared_lock.ts";
import type { Change, Journal } from "./journal.ts";
import { replay } from "./load.ts";
import type { LoadedTree } from "./loaded_tree.ts";
import { Trace } from "./trace.ts";

export interface RoundsDeps {
  readonly journal: Journal;
  /** Held during a round. */
  readonly lock: SharedLock;
  /** Of garbage collection. */
  readonly gcLock: Pick<SharedLock, "voids">;
  readonly tree: LoadedTree;
  /** No other host changes the tree: what is loaded of it is up to date. */
  readonly isOwn: boolean;
  /** What was put is durable when it resolves. */
  readonly sync: () => Promise<void>;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** In a round by itself: nothing in the tree is uncommitted. It changes nothing. */
  readonly alone?: boolean | undefined;
}

interface Call {
  readonly alone: boolean;
  readonly signal: AbortSignal | undefined;
  /** Runs it. What is returned ends it. Rejects never. */
  readonly run: (trace: Trace) => Promise<() => void>;
  readonly fail: (reason: unknown) => void;
}

/** A call that has run, and waits for a commit. */
interface Made {
  readonly call: Call;
  readonly trace: Trace;
  readonly end: () => void;
}

export class Rounds {
  readonly #deps: RoundsDeps;
  #waiting: Call[] = [];
  #isRunning = false;
  /** Of the lock of garbage collection, when the tree was loaded. */
  #voids = 0;

  constructor(deps: RoundsDeps) {
    this.#deps = deps;
  }

  /**
   * Runs `run` in a round, as often as it takes; it reads and changes the tree, and resolves to the
   * result of the call. When it resolves the changes are durable.
   *
   * @throws what `run` throws; of the store, when nothing was changed
   */
  call<T>(run: (trace: Trace) => Promise<T>, { signal, alone = false }: CallOptions): Promise<T> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const call: Call = {
      alone,
      signal,
      fail: reject,
      run: (trace) =>
        run(trace).then(
          (result) => () => resolve(result),
          (error) => () => reject(error),
        ),
    };
    const leave = () => {
      const at = this.#waiting.indexOf(call);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave);
    this.#waiting.push(call);
    void this.#run();
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#waiting.length > 0) {
      const release = await this.#deps.lock.acquireExclusive();
      await this.#round(this.#next());
      release();
    }
    this.#isRunning = false;
  }

  /** The calls of a round: those that came before it. */
  #next(): Call[] {
    const alone = this.#waiting.findIndex((call) => call.alone);
    return this.#waiting.splice(0, alone < 0 ? this.#waiting.length : Math.max(alone, 1));
  }

  async #round(calls: readonly Call[]): Promise<void> {
    try {
      await this.#takeOver();
    } catch (error) {
      for (const call of calls) call.fail(error);
      return;
    }
    // Whoever has seen only what is committed need not wait for a commit.
    const made: Made[] = [];
    for (const call of calls) {
      if (call.signal?.aborted) {
        call.fail(call.signal.reason);
        continue;
      }
      const trace = new Trace();
      const end = await call.run(trace);
      if (made.length === 0 && trace.changes.length === 0) end();
      else made.push({ call, trace, end });
    }
    if (made.length > 0) await this.#commit(made);
  }

  async #takeOver(): Promise<void> {
    const { journal, tree, gcLock, isOwn } = this.#deps;
    // Directories that were stored here, and that no root had yet, may have gone: they are stored
    // again.
    if (this.#voids !== gcLock.voids) tree.drop();
    this.#voids = gcLock.voids;
    // The first call loads it as it is now.
    if (tree.root === undefined || isOwn) return;
    const changes = await journal.since();
    if (changes === undefined) tree.drop();
    else await this.#apply(changes);
  }

  /** Makes changes that are in the journal; when that fails, the tree is loaded anew. */
  async #apply(changes: readonly Change[]): Promise<void> {
    const { tree } = this.#deps;
    try {
      for (const change of changes) if (tree.root !== undefined) await replay(tree.root, change);
    } catch {
      tree.drop();
    }
  }

  async #commit(made: readonly Made[]): Promise<void> {
    const { journal, tree, sync } = this.#deps;
    const traces = made.map(({ trace }) => trace);
    const again: Call[] = [];
    try {
      if (traces.some(({ changes }) => changes.length > 0)) await sync();
      const { others, overtaken } = await journal.append(traces);
      for (const [at, { call, end }] of made.entries()) {
        if (overtaken[at]) again.push(call);
        else end();
      }
      if (again.length > 0) tree.drop();
      else await this.#apply(others);
    } catch (error) {
      tree.drop();
      for (const { call } of made) call.fail(error);
    }
    this.#waiting.unshift(...again);
  }
}
