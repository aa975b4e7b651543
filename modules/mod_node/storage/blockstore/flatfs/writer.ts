/** Writes blocks to files. Many files and folders share a flush. */
import { join } from "node:path";
import { mapConcurrent } from "../../../util/async/map_concurrent.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { uniqueName } from "../../repo/atomic_file.ts";
import type { DiskUsage } from "./disk_usage.ts";
import type { FlatfsFs } from "./files.ts";
import { fileOf, type ShardFunc, temporaryFolder } from "./layout.ts";

/** Maximum number of files that are written or checked at the same time. */
export const MAX_CONCURRENT = 16;
/** Milliseconds after which a block is written when nobody requests a flush. */
const WRITE_AFTER_MS = 500;

export interface PendingBlock {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly release: (() => void) | undefined;
}

export interface WriterOptions {
  readonly folder: string;
  readonly folderOf: ShardFunc;
  readonly fs: FlatfsFs;
  readonly usage: DiskUsage;
  /** Maximum bytes that may wait to be written. */
  readonly limit: number;
}

export class Writer {
  readonly #options: WriterOptions;
  /** Blocks by name that have no file yet, or a file that is not durable. */
  readonly #waiting = new Map<string, PendingBlock>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Number of successful flushes. */
  flushes = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get(name: string): PendingBlock | undefined {
    return this.#waiting.get(name);
  }

  names(): Set<string> {
    return new Set(this.#waiting.keys());
  }

  pathOf(name: string): string {
    const { folder, folderOf } = this.#options;
    return join(folder, folderOf(name), fileOf(name));
  }

  /**
   * Resolves when more blocks may be queued.
   * @throws NodeError STORE_FULL
   */
  async room(): Promise<void> {
    while (this.#bytes >= this.#options.limit) await this.flush();
  }

  /** Queues a block that is not queued yet. */
  take(block: PendingBlock): void {
    this.#waiting.set(block.name, block);
    this.#bytes += block.bytes.length;
    // Callers that depend on the flush see its failure when they wait.
    if (this.#bytes >= this.#options.limit / 2) this.flush().catch(() => {});
    // Nobody waits for blocks that were fetched from peers. Without the timer, a killed process
    // would lose them.
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.size > 0) this.flush().catch(() => {});
    }, WRITE_AFTER_MS).unref();
  }

  /** Stops the timer: from now on, blocks are only written on request. */
  close(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Removes a block from the queue, because it has its file or was deleted. Returns whether it was
   * queued.
   */
  drop(name: string): boolean {
    const waiting = this.#waiting.get(name);
    if (waiting === undefined) return false;
    this.#waiting.delete(name);
    this.#bytes -= waiting.bytes.length;
    waiting.release?.();
    return true;
  }

  /**
   * Makes all queued blocks durable. Calls during a flush share the next one.
   *
   * @throws NodeError STORE_FULL; blocks that were not written stay in the queue
   */
  flush(): Promise<void> {
    this.#next ??= this.#flushAfter(this.#flushing);
    return this.#next;
  }

  /** Resolves when nothing is being written. */
  async idle(): Promise<void> {
    const last = () => this.#next ?? this.#flushing;
    for (let flush = last(); flush !== undefined; flush = last()) await flush.catch(() => {});
  }

  /** Resolves when the entries of these block folders are durable. */
  async syncFolders(names: ReadonlySet<string>): Promise<void> {
    if (names.size === 0) return;
    const { folder, fs } = this.#options;
    // Syncs the root folder as well, because some of the folders may be new.
    const paths = [folder, ...[...names].map((name) => join(folder, name))];
    for await (const _ of mapConcurrent(paths, MAX_CONCURRENT, (path) => fs.syncFolder(path)));
  }

  failed(error: unknown): NodeError {
    if (error instanceof NodeError) return error;
    return failure("STORE_FULL", { path: this.#options.folder, reason: (error as Error).message }, error);
  }

  async #flushAfter(before: Promise<void> | undefined): Promise<void> {
    await before?.catch(() => {});
    this.#flushing = this.#next;
    this.#next = undefined;
    try {
      await this.#write([...this.#waiting.values()]);
    } catch (error) {
      throw this.failed(error);
    } finally {
      this.#flushing = undefined;
    }
  }

  async #write(blocks: readonly PendingBlock[]): Promise<void> {
    const changed = new Set<string>();
    for await (const folder of mapConcurrent(blocks, MAX_CONCURRENT, (block) => this.#writeFile(block)))
      changed.add(folder);
    await this.syncFolders(changed);
    for (const { name } of blocks) this.drop(name);
    this.flushes += 1;
  }

  /**
   * Writes the file of a block. The file is durable before it gets its name, so a name never refers
   * to a partial block. Resolves with its folder.
   */
  async #writeFile({ name, bytes }: PendingBlock): Promise<string> {
    const { folder, folderOf, fs, usage } = this.#options;
    const draft = join(folder, temporaryFolder, uniqueName("temp-"));
    await fs.write(draft, bytes);
    const made = await fs.makeFolder(join(folder, folderOf(name)));
    await fs.rename(draft, this.pathOf(name));
    usage.add(bytes.length + (made ?? 0));
    return folderOf(name);
  }
}
