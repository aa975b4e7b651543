/** Metadata with a copy in a file, from which it can be restored when the store itself is lost. */
import { randomBytes } from "node:crypto";
import { copyHeader, type Entry, writeCopy } from "./copy_file.ts";
import { compareAndSet } from "./overlay_transaction.ts";
import type { KeyPage, KeyRange, MetadataStore, MetadataWriter } from "./store.ts";

export interface CopiedMetadataOptions {
  /** Path of the copy. */
  readonly path: string;
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /** Minimum milliseconds between a change and the copy. */
  readonly delayMs?: number | undefined;
}

/** Key of the id of the copy that contains all changes. */
const copiedKey = "node/copied";
/** Entries that a node finds again by itself: records of peers, and the search for providers. */
const volatilePrefixes: readonly string[] = ["peers/", "routing/"];

const DELAY_MS = 60_000;
/** Copying takes at most one part in 100 of the time. */
const MAX_SHARE = 100;

/** Whether an entry belongs to a copy. Entries that a node finds again by itself do not. */
export const isCopied = (key: string) =>
  key !== copiedKey && !volatilePrefixes.some((prefix) => key.startsWith(prefix));

/**
 * Copies the metadata some time after a change, before a garbage collection, and when the store is
 * closed. While a copy is current, the metadata contains its id. The first change after that
 * removes the id in its own transaction. So a copy that is behind the metadata after a crash is
 * recognized, and a current copy is not written again.
 */
export class CopiedMetadata implements MetadataStore {
  readonly #inner: MetadataStore;
  readonly #options: CopiedMetadataOptions;
  #isCurrent: boolean;
  /** Number of transactions with changes since the store was opened. */
  #changes = 0;
  #timer: NodeJS.Timeout | undefined;
  #delayMs: number;
  #copying: Promise<void> | undefined;
  #lastNotice: string | undefined;

  private constructor(inner: MetadataStore, isCurrent: boolean, options: CopiedMetadataOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#isCurrent = isCurrent;
    this.#delayMs = options.delayMs ?? DELAY_MS;
    this.#plan();
  }

  static async open(inner: MetadataStore, options: CopiedMetadataOptions): Promise<CopiedMetadata> {
    const named = Buffer.from((await inner.get(copiedKey)) ?? []).toString();
    const found = await copyHeader(options.path);
    return new CopiedMetadata(inner, found !== undefined && found.id === named, options);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#inner.get(key);
  }

  has(key: string): Promise<boolean> {
    return this.#inner.has(key);
  }

  range(range?: KeyRange): AsyncIterable<Entry> {
    return this.#inner.range(range);
  }

  keys(page: KeyPage): Promise<readonly string[]> {
    return this.#inner.keys(page);
  }

  transaction<T>(run: (writer: MetadataWriter) => T): Promise<T> {
    return this.#inner.transaction((writer) => {
      let changed = false;
      const note = (key: string) => {
        changed ||= isCopied(key);
      };
      const result = run({
        get: (key) => writer.get(key),
        has: (key) => writer.has(key),
        range: (range) => writer.range(range),
        put(key, value) {
          note(key);
          writer.put(key, value);
        },
        delete(key) {
          note(key);
          return writer.delete(key);
        },
      });
      if (changed) this.#noteChange(writer);
      return result;
    });
  }

  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean> {
    if (!isCopied(key)) return this.#inner.compareAndSet(key, expected, value);
    return this.transaction(compareAndSet(key, expected, value));
  }

  /** Updates the copy. A failure is reported to the operator and does not reject. */
  copy(): Promise<void> {
    this.#copying ??= this.#copy()
      .catch((error: Error) => this.#report(error))
      .finally(() => {
        this.#copying = undefined;
        this.#plan();
      });
    return this.#copying;
  }

  async close(): Promise<void> {
    await this.#copying;
    await this.copy();
    await this.abandon();
  }

  /** Closes the store without updating the copy. */
  async abandon(): Promise<void> {
    await this.#copying;
    clearTimeout(this.#timer);
    await this.#inner.close();
  }

  #noteChange(writer: MetadataWriter): void {
    this.#changes += 1;
    if (this.#isCurrent) writer.delete(copiedKey);
    this.#isCurrent = false;
    this.#plan();
  }

  #plan(): void {
    if (this.#isCurrent || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.copy();
    }, this.#delayMs);
    this.#timer.unref();
  }

  async #copy(): Promise<void> {
    if (this.#isCurrent) return;
    const began = performance.now();
    // The transaction resolves when everything before it is committed, so the listing below sees
    // it.
    const before = await this.#inner.transaction(() => this.#changes);
    const header = { id: randomBytes(12).toString("hex"), made: new Date().toISOString() };
    await writeCopy(this.#options.path, header, this.#entries());
    await this.#inner.transaction((writer) => {
      if (this.#changes !== before) return;
      writer.put(copiedKey, Buffer.from(header.id));
      this.#isCurrent = true;
    });
    this.#lastNotice = undefined;
    const { delayMs = DELAY_MS } = this.#options;
    this.#delayMs = Math.max(delayMs, (performance.now() - began) * MAX_SHARE);
  }

  async *#entries(): AsyncGenerator<Entry, void, undefined> {
    for await (const entry of this.#inner.range()) if (isCopied(entry[0])) yield entry;
  }

  #report({ message }: Error): void {
    if (this.#lastNotice === message) return;
    this.#lastNotice = message;
    this.#options.onNotice?.(`cannot write the copy of pins and roots to ${this.#options.path}: ${message}`);
  }
}
