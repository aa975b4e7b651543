/** Metadata of which a copy is kept in a file, for the day on which the store itself is lost. */
import { randomBytes } from "node:crypto";
import { copyHeader, type Entry, writeCopy } from "./copy_file.ts";
import { compareAndSet } from "./overlay_transaction.ts";
import type { KeyPage, KeyRange, MetadataStore, MetadataWriter } from "./store.ts";

export interface CopiedMetadataOptions {
  /** The file. */
  readonly path: string;
  /** Called with a sentence that the operator should read. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /** Milliseconds after a change in which the copy is made, at least. */
  readonly delayMs?: number | undefined;
}

/** Name of the copy that has all changes. */
const copiedKey = "node/copied";
/** What is found anew by itself: records of peers, the search for providers. */
const volatilePrefixes: readonly string[] = ["peers/", "routing/"];

const DELAY_MS = 60_000;
/** Of the time, copies may take one part in so many. */
const MAX_SHARE = 100;

/** Whether an entry belongs to a copy: what is found anew by itself does not. */
export const isCopied = (key: string) =>
  key !== copiedKey && !volatilePrefixes.some((prefix) => key.startsWith(prefix));

/**
 * A copy is made some time after a change, before a collection of garbage, and when the store is closed. In good order,
 * the metadata names the copy that has all of its changes; the first change after that takes the name away, in the same
 * transaction. So a copy that a crash has left behind the metadata is known as such, and one that is up to date is not
 * written again.
 */
export class CopiedMetadata implements MetadataStore {
  readonly #inner: MetadataStore;
  readonly #options: CopiedMetadataOptions;
  #isCurrent: boolean;
  /** Transactions with changes so far. */
  #changes = 0;
  #timer: NodeJS.Timeout | undefined;
  #delayMs: number;
  #copying: Promise<void> | undefined;
  #told: string | undefined;

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

  /** Brings the copy up to date. What goes wrong is told to the operator, and is no failure of the caller. */
  copy(): Promise<void> {
    this.#copying ??= this.#copy()
      .catch((error: Error) => this.#tell(error))
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

  /** Closes it, and leaves the copy as it is. */
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
    // It resolves when everything before it is committed, and so seen by the listing.
    const before = await this.#inner.transaction(() => this.#changes);
    const header = { id: randomBytes(12).toString("hex"), made: new Date().toISOString() };
    await writeCopy(this.#options.path, header, this.#entries());
    await this.#inner.transaction((writer) => {
      if (this.#changes !== before) return;
      writer.put(copiedKey, Buffer.from(header.id));
      this.#isCurrent = true;
    });
    this.#told = undefined;
    const { delayMs = DELAY_MS } = this.#options;
    this.#delayMs = Math.max(delayMs, (performance.now() - began) * MAX_SHARE);
  }

  async *#entries(): AsyncGenerator<Entry, void, undefined> {
    for await (const entry of this.#inner.range()) if (isCopied(entry[0])) yield entry;
  }

  #tell({ message }: Error): void {
    if (this.#told === message) return;
    this.#told = message;
    this.#options.onNotice?.(`no copy of pins and roots can be kept in ${this.#options.path}: ${message}`);
  }
}
