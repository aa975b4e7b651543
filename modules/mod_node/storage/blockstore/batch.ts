/**
 * Puts new blocks in batches, so that many blocks need only one promise and one entry in the queue
 * of the store.
 */
import type { Block } from "./store.ts";

interface Sink {
  put(blocks: readonly Block[]): Promise<void>;
}

/** A batch is put once it has this many blocks or bytes. */
const MAX_BLOCKS = 512;
const MAX_BYTES = 1024 * 1024;

/**
 * Collects blocks. The blocks of an unfinished batch are not visible until `flush` puts them. After
 * a put has failed, every later call fails with the same reason.
 */
export class BlockBatch {
  readonly #store: Sink;
  #blocks: Block[] = [];
  #bytes = 0;
  /** Total bytes of all added blocks. */
  total = 0;
  #running = new Set<Promise<void>>();
  #failure: { readonly reason: unknown } | undefined;

  constructor(store: Sink) {
    this.#store = store;
  }

  /**
   * Adds a block. Callers await the returned promise before they add more: this is the backpressure
   * of the store.
   */
  readonly add = (block: Block): Promise<void> | undefined => {
    this.#blocks.push(block);
    this.#bytes += block.bytes.length;
    this.total += block.bytes.length;
    return this.#blocks.length >= MAX_BLOCKS || this.#bytes >= MAX_BYTES ? this.#put() : undefined;
  };

  /** Resolves when every added block is in the store. */
  async flush(): Promise<void> {
    if (this.#blocks.length > 0 && this.#failure === undefined) this.#put();
    await Promise.allSettled(this.#running);
    if (this.#failure !== undefined) throw this.#failure.reason;
  }

  #put(): Promise<void> {
    const blocks = this.#blocks;
    this.#blocks = [];
    this.#bytes = 0;
    if (this.#failure !== undefined) return Promise.reject(this.#failure.reason);
    const running = this.#store.put(blocks);
    this.#running.add(running);
    running.then(
      () => this.#running.delete(running),
      (reason: unknown) => {
        this.#running.delete(running);
        this.#failure ??= { reason };
      },
    );
    return running;
  }
}
