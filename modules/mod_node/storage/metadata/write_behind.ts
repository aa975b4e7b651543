/** Delays changes that need not be durable at once, and writes them together. */
import type { MetadataStore } from "./store.ts";

export interface WriteBehindOptions {
  /** Milliseconds that a change may wait; a crash loses it meanwhile. */
  readonly delayMs: number;
  /** Changes that may wait; beyond that they are written at once. */
  readonly maxChanges?: number;
}

type Entry = readonly [key: string, value: Uint8Array];

const MAX_CHANGES = 4096;

/** A view of the metadata below a prefix, delayed changes included. Keys are without the prefix. */
export class WriteBehind {
  readonly #metadata: MetadataStore;
  readonly #prefix: string;
  readonly #options: WriteBehindOptions;
  /** Undefined is a deletion. */
  #changed = new Map<string, Uint8Array | undefined>();
  /** Changes that are being written. */
  #written: ReadonlyMap<string, Uint8Array | undefined> = new Map();
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
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
    if (this.#changed.size >= (this.#options.maxChanges ?? MAX_CHANGES)) void this.flush().catch(() => undefined);
    else this.#timer ??= setTimeout(() => void this.flush().catch(() => undefined), this.#options.delayMs).unref();
  }

  /** The entries that exist from beginning to end, and those that are added meanwhile; in any order. */
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
    } finally {
      this.#written = new Map();
      this.#writing = undefined;
    }
  }

  /** Writes pending changes; later changes are dropped. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.flush();
  }
}
