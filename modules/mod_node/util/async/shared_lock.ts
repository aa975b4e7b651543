/**
 * A shared/exclusive lock. It separates garbage collection from every operation that adds blocks.
 */
import { failure } from "../errors.ts";

/** Releases the lock. Later calls have no effect. */
export type Release = () => void;

/**
 * Grants the lock in the order of the requests. An exclusive request waits for the current holders,
 * and all later requests wait behind it.
 */
export class SharedLock {
  #shared = 0;
  #exclusive = false;
  /** How often the lock was held exclusively. */
  #exclusions = 0;
  /** How often `voidCalls` was called. */
  #voids = 0;
  readonly #listeners = new Set<() => void>();
  readonly #waiting: { readonly exclusive: boolean; readonly enter: () => void }[] = [];

  /**
   * Whether somebody waits for exclusive use. Long-term holders should then release the lock and
   * acquire it again.
   */
  get contended(): boolean {
    return this.#waiting.some(({ exclusive }) => exclusive);
  }

  /**
   * Calls `listener` whenever somebody begins to wait for exclusive use; the returned function
   * unsubscribes it.
   */
  onExclusiveWaiting(listener: () => void): () => void {
    const holder = () => listener();
    this.#listeners.add(holder);
    return () => this.#listeners.delete(holder);
  }

  acquireShared(signal?: AbortSignal): Promise<Release> {
    return this.#acquire(false, signal);
  }

  /** Number to remember for `acquireSharedAgain`; to be read while holding a share. */
  get voids(): number {
    return this.#voids;
  }

  /**
   * Invalidates all calls that have given up their share for a while: their `acquireSharedAgain`
   * fails. The exclusive holder calls this when this host has lost its session in a shared store
   * and joined it again. Garbage collection on other hosts did not know of the blocks that these
   * calls protect.
   */
  voidCalls(): void {
    this.#voids += 1;
  }

  /**
   * Acquires a share again, for a call that had one when `voids` had this value.
   * @throws NodeError SESSION_LOST if `voidCalls` was called since
   */
  async acquireSharedAgain(voids: number, signal?: AbortSignal): Promise<Release> {
    const release = await this.acquireShared(signal);
    if (voids === this.#voids) return release;
    release();
    throw failure("SESSION_LOST");
  }

  acquireExclusive(signal?: AbortSignal): Promise<Release> {
    return this.#acquire(true, signal);
  }

  /** Runs `run` while holding a share. */
  async withShared<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquireShared(signal);
    try {
      return await run();
    } finally {
      release();
    }
  }

  /**
   * Runs `work`, which may take long, without the lock, and then `finish` with a share. If somebody
   * held the lock exclusively meanwhile, the result of `work` may be invalid, and both run again.
   */
  async retryOptimistically<T>(work: () => Promise<void>, finish: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      // Waits until no exclusive holder is left.
      (await this.acquireShared(signal))();
      const before = this.#exclusions;
      await work();
      const finished = await this.withShared(
        async () => (this.#exclusions === before ? { result: await finish() } : undefined),
        signal,
      );
      if (finished !== undefined) return finished.result;
    }
  }

  async #acquire(exclusive: boolean, signal: AbortSignal | undefined): Promise<Release> {
    signal?.throwIfAborted();
    if (this.#waiting.length > 0 || !this.#free(exclusive)) await this.#wait(exclusive, signal);
    else this.#enter(exclusive);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      if (exclusive) this.#exclusive = false;
      else this.#shared -= 1;
      this.#admit();
    };
  }

  #wait(exclusive: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = {
      exclusive,
      enter: () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      },
    };
    const leave = () => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      this.#admit();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    this.#waiting.push(waiter);
    if (exclusive) for (const listener of this.#listeners) listener();
    return promise;
  }

  #free(exclusive: boolean): boolean {
    return !this.#exclusive && (!exclusive || this.#shared === 0);
  }

  #enter(exclusive: boolean): void {
    if (!exclusive) {
      this.#shared += 1;
      return;
    }
    this.#exclusive = true;
    this.#exclusions += 1;
  }

  #admit(): void {
    for (let first = this.#waiting[0]; first !== undefined && this.#free(first.exclusive); first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#enter(first.exclusive);
      first.enter();
    }
  }
}
