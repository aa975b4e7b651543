/**
 * Delays changes that need not be durable at once, and writes them together. While the store is
 * unreachable, changes wait in memory.
 */
import type { MetadataStore } from "./store.ts";

export interface WriteBehindOptions {
  /** Milliseconds that a change may wait. A crash in that time loses the change. */
  readonly delayMs: number;
  /** Maximum number of waiting changes; beyond that, they are written immediately. */
  readonly maxChanges?: number;
}

type Entry = readonly [key: string, value: Uint8Array];

const MAX_CHANGES = 4096;
/**
 * Maximum number of waiting changes while the store is unreachable; beyond that, the oldest are
 * lost.
 */
const MAX_UNWRITTEN = 65_536;

/**
 * A view of the metadata below a prefix that includes delayed changes. Keys are without the prefix.
 */
export class WriteBehind {
  readonly #metadata: MetadataStore;
  readonly #prefix: string;
  readonly #options: WriteBehindOptions;
  /** A value of undefined is a deletion. */
  #changed = new Map<string, Uint8Array | undefined>();
  /** Changes that are being written. */
  #written: ReadonlyMap<string, Uint8Array | undefined> = new Map();
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The last attempt to write failed, so the next one waits for the delay. */
  #isAway = false;
  #closed = false;

  constructor(metadata: MetadataStore, prefix: string, options: WriteBehindOptions) {
    this.#metadata = metadata;
    this.#prefix = prefix;
    this.#options = options;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    for (const changes of [this.#changed, this.#written]) if (changes.has(key)) return changes.get(key);
    return this.#metadata.get(this.#prefix + key);
  }

  set(key: string, value: Uint8Array | undefined): void {
    if (this.#closed) return;
    this.#changed.set(key, value);
    const { maxChanges = MAX_CHANGES } = this.#options;
    if (this.#isAway && this.#changed.size > MAX_UNWRITTEN)
      this.#changed.delete(this.#changed.keys().next().value as string);
    if (!this.#isAway && this.#changed.size >= maxChanges) void this.flush().catch(() => undefined);
    else this.#timer ??= this.#later();
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => void this.flush().catch(() => undefined), this.#options.delayMs).unref();
  }

  /**
   * Yields the entries that exist from beginning to end, and those that are added in the meantime,
   * in any order.
   */
  async *range(prefix: string): AsyncGenerator<Entry, void, undefined> {
    const changes = new Map([...this.#written, ...this.#changed]);
    for (const [key, value] of changes) if (value !== undefined && key.startsWith(prefix)) yield [key, value];
    for await (const [found, value] of this.#metadata.range({ prefix: this.#prefix + prefix })) {
      const key = found.slice(this.#prefix.length);
      if (!changes.has(key)) yield [key, value];
    }
  }

  /** Resolves when all earlier changes are durable. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#writing !== undefined) await this.#writing.catch(() => undefined);
    if (this.#changed.size === 0) return;
    this.#writing = this.#write();
    await this.#writing;
  }

  async #write(): Promise<void> {
    const changes = this.#changed;
    this.#changed = new Map();
    this.#written = changes;
    try {
      await this.#metadata.transaction((writer) => {
        for (const [key, value] of changes) {
          if (value === undefined) writer.delete(this.#prefix + key);
          else writer.put(this.#prefix + key, value);
        }
      });
      this.#isAway = false;
    } catch (error) {
      this.#isAway = true;
      // The changes wait again; newer changes of the same keys replace them.
      this.#changed = new Map([...changes, ...this.#changed]);
      if (!this.#closed) this.#timer ??= this.#later();
      throw error;
    } finally {
      this.#written = new Map();
      this.#writing = undefined;
    }
  }

  /** Writes waiting changes. Changes after that are dropped. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.flush();
  }
}
