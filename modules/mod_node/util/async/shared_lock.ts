/**
 * A shared/exclusive lock, which keeps garbage collection apart from everything that adds blocks.
 */
import { failure } from "../errors.ts";

/** To be called once, when the holder is done. */
export type Release = () => void;

/**
 * Shared and exclusive holders, in the order in which they came: whoever wants it exclusively waits
 * for the present holders, and later callers wait behind.
 */
export class SharedLock {
  #shared = 0;
  #exclusive = false;
  /** How often it was held exclusively. */
  #exclusions = 0;
  /** How often what calls had done without it became void. */
  #voids = 0;
  readonly #listeners = new Set<() => void>();
  readonly #waiting: { readonly exclusive: boolean; readonly enter: () => void }[] = [];

  /** Somebody wants it exclusively: long-term holders should release it and acquire it again. */
  get contended(): boolean {
    return this.#waiting.some(({ exclusive }) => exclusive);
  }

  /**
   * `hear` is called whenever somebody begins to wait for exclusive use. The returned function ends
   * that.
   */
  onExclusiveWaiting(listener: () => void): () => void {
    const holder = () => listener();
    this.#listeners.add(holder);
    return () => this.#listeners.delete(holder);
  }

  acquireShared(signal?: AbortSignal): Promise<Release> {
    return this.#acquire(false, signal);
  }

  /** For `acquireSharedAgain`; to be read by a holder of a share. */
  get voids(): number {
    return this.#voids;
  }

  /**
   * To be called by who holds it exclusively, when this host has begun anew in a store that it
   * shares: garbage collection did not ask for what calls protect that have given up their share
   * for a while, so they must not go on.
   */
  voidCalls(): void {
    this.#voids += 1;
  }

  /**
   * For a call that had a share when `voids` was this, and gave it up for a while. @throws
   * NodeError SESSION_LOST
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

  /** Runs `run` while holding a share of the lock. */
  async withShared<T>(run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquireShared(signal);
    try {
      return await run();
    } finally {
      release();
    }
  }

  /**
   * Runs `work` without the lock, so that it may take long, then `finish` with a share of it. When
   * somebody has held the lock exclusively meanwhile, the result of `work` may be invalid, and both
   * are repeated.
   */
  async retryOptimistically<T>(work: () => Promise<void>, finish: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      // Waits for the present exclusive holder.
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
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      if (exclusive) this.#exclusive = false;
      else this.#shared -= 1;
      this.#admit();
    };
  }

  #wait(exclusive: boolean, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const place = {
      exclusive,
      enter: () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      },
    };
    const leave = () => {
      this.#waiting.splice(this.#waiting.indexOf(place), 1);
      this.#admit();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    this.#waiting.push(place);
    if (exclusive) for (const hear of this.#listeners) hear();
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
