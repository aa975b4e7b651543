/**
 * Runs calls on a tree that other hosts change, too. Calls run in rounds. At the start of a round,
 * the tree applies the changes that other hosts have committed. Then the waiting calls run one
 * after the other, and their changes are committed together. A call runs again in the next round if
 * changes that were committed meanwhile could have led to another result. So the order of the
 * journal is an order of all calls of all hosts, and no call sees changes that are not committed.
 */
import type { SharedLock } from "../../util/async/shared_lock.ts";
import type { Journal, NamespaceChange } from "./journal.ts";
import { replay } from "./load.ts";
import type { LoadedTree } from "./loaded_tree.ts";
import { Trace } from "./trace.ts";

export interface RoundsDeps {
  readonly journal: Journal;
  /** Held during a round. */
  readonly lock: SharedLock;
  /** The lock of garbage collection. */
  readonly gcLock: Pick<SharedLock, "voids">;
  readonly tree: LoadedTree;
  /** Whether no other host changes the tree: the loaded tree is then up to date. */
  readonly isOwn: boolean;
  /** Resolves when the blocks that were put are durable. */
  readonly sync: () => Promise<void>;
}

export interface RoundOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Run the call in a round of its own, so that the tree has no uncommitted changes. The call must
   * not change anything.
   */
  readonly alone?: boolean | undefined;
}

interface RoundCall {
  readonly alone: boolean;
  readonly signal: AbortSignal | undefined;
  /** Runs the call and returns a function that settles it. Never rejects. */
  readonly run: (trace: Trace) => Promise<() => void>;
  readonly fail: (reason: unknown) => void;
}

/** A call that was run and waits for a commit. */
interface UncommittedCall {
  readonly call: RoundCall;
  readonly trace: Trace;
  readonly end: () => void;
}

export class Rounds {
  readonly #deps: RoundsDeps;
  #waiting: RoundCall[] = [];
  #isRunning = false;
  /**
   * The `voids` counter of the lock of garbage collection when the tree was loaded. If it has
   * changed, stored directories may have been removed.
   */
  #voids = 0;

  constructor(deps: RoundsDeps) {
    this.#deps = deps;
  }

  /**
   * Calls `run` in a round, and again if needed. `run` reads and changes the tree, and resolves to
   * the result of the call. The changes are durable when this resolves.
   *
   * @throws what `run` throws; errors of the store, when nothing was changed
   */
  call<T>(run: (trace: Trace) => Promise<T>, { signal, alone = false }: RoundOptions): Promise<T> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const call: RoundCall = {
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

  /** Returns the calls of the next round: those that were made so far. */
  #next(): RoundCall[] {
    const alone = this.#waiting.findIndex((call) => call.alone);
    return this.#waiting.splice(0, alone < 0 ? this.#waiting.length : Math.max(alone, 1));
  }

  async #round(calls: readonly RoundCall[]): Promise<void> {
    try {
      await this.#takeOver();
    } catch (error) {
      for (const call of calls) call.fail(error);
      return;
    }
    // Calls that changed nothing and have seen only committed changes need not wait for the commit.
    const made: UncommittedCall[] = [];
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
    // Garbage collection may have removed directories that were stored by this host and were not
    // part of a root yet. They are stored again.
    if (this.#voids !== gcLock.voids) tree.drop();
    this.#voids = gcLock.voids;
    // The first call loads the current state.
    if (tree.root === undefined || isOwn) return;
    const changes = await journal.since();
    if (changes === undefined) tree.drop();
    else await this.#apply(changes);
  }

  /** Applies changes of the journal to the tree. If that fails, the tree is loaded again. */
  async #apply(changes: readonly NamespaceChange[]): Promise<void> {
    const { tree } = this.#deps;
    try {
      for (const change of changes) if (tree.root !== undefined) await replay(tree.root, change);
    } catch {
      tree.drop();
    }
  }

  async #commit(made: readonly UncommittedCall[]): Promise<void> {
    const { journal, tree, sync } = this.#deps;
    const traces = made.map(({ trace }) => trace);
    const again: RoundCall[] = [];
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
