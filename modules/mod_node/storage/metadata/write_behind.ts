/** Changes that need not be on the disk at once: they are written together, a while after the first of them. */
import type { MetadataStore } from "./store.ts";

export interface WriteBehindOptions {
  /** Milliseconds that a change may wait; a crash takes it away meanwhile. */
  readonly delayMs: number;
  /** Changes that may wait: more are written at once. */
  readonly maxChanges?: number;
}

type Entry = readonly [key: string, value: Uint8Array];

const MAX_CHANGES = 4096;

/** A view of one room of the metadata, changes and all. Keys are those of the room. */
export class WriteBehind {
  readonly #metadata: MetadataStore;
  readonly #prefix: string;
  readonly #options: WriteBehindOptions;
  /** Undefined is a deletion. */
  #changed = new Map<string, Uint8Array | undefined>();
  /** On its way to the disk. */
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

  /** Those that were there when it began and still are, and those that have come; no order. */
  async *range(prefix: string): AsyncGenerator<Entry, void, undefined> {
    const changes = new Map([...this.#written, ...this.#changed]);
    for (const [key, value] of changes) if (value !== undefined && key.startsWith(prefix)) yield [key, value];
    for await (const [found, value] of this.#metadata.range({ prefix: this.#prefix + prefix })) {
      const key = found.slice(this.#prefix.length);
      if (!changes.has(key)) yield [key, value];
    }
  }

  /** What was changed before is on the disk when it resolves. */
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

  /** Writes what has changed; changes are forgotten from then on. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.flush();
  }
}
