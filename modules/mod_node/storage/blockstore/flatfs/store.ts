import { mkdir, open, opendir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../../formats/cid/codecs.ts";
import { matches } from "../../../formats/cid/hashes.ts";
import { makeCid, usualForms } from "../../../formats/cid/make.ts";
import { mapConcurrent } from "../../../util/async/map_concurrent.ts";
import { SharedLock } from "../../../util/async/shared_lock.ts";
import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { failure, type NodeError } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { writeAtomically } from "../../repo/atomic_file.ts";
import { BufferPool } from "../buffer_pool.ts";
import { type Block, type BlockStore, MAX_READING_BYTES, type PutOptions, type StoreSnapshot } from "../store.ts";
import { DiskUsage } from "./disk_usage.ts";
import { diskFs, type FlatfsFs } from "./files.ts";
import {
  cidNamed,
  defaultShardFunc,
  folderMode,
  type NamedAfter,
  nameIn,
  nameOf,
  readme,
  readmeFile,
  type ShardFunc,
  shardFunc,
  shardingFile,
  temporaryFolder,
} from "./layout.ts";
import { FlatfsSnapshot } from "./snapshot.ts";
import { MAX_CONCURRENT, type PendingBlock, Writer } from "./writer.ts";

export interface FlatfsOptions {
  /** The shard function of a new store; an existing store must have the same one. */
  readonly shardFunc?: string | undefined;
  /**
   * Whether files are named after CIDs or multihashes. By default after CIDs, so that each CID of a
   * multihash has its own file.
   */
  readonly namedAfter?: NamedAfter | undefined;
  /** Maximum bytes in memory that are put and not written yet; 16 MiB by default. */
  readonly bufferedBytes?: number;
  /** Whether to check every block that is read from the disk against its CID. */
  readonly verifyOnRead?: boolean;
  /** The file system under the store; tests inject faults here. */
  readonly fs?: FlatfsFs;
}

const readOnlyOrFull = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);
const unshared = new BufferPool();

/**
 * Opens a store of blocks in the files of go-ipfs, which can use the same folder while this node
 * does not. Each CID has its own file, as in version 0.9.0, or all CIDs of a multihash share one,
 * as in current versions.
 *
 * Only one process may use the store at a time: the caller must have the lock of the repo.
 *
 * @throws NodeError STORE_FULL when the folder cannot be written to, STORE_BROKEN when it is not
 * such a store
 */
export async function openFlatfs(folder: string, options: FlatfsOptions = {}): Promise<BlockStore> {
  try {
    const folderOf = await openLayout(folder, options.shardFunc ?? defaultShardFunc);
    const drafts = join(folder, temporaryFolder);
    await rm(drafts, { recursive: true, force: true });
    await mkdir(drafts, { mode: folderMode });
    return new Flatfs(folder, folderOf, await DiskUsage.open(folder), options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw failure(readOnlyOrFull.has(code ?? "") ? "STORE_FULL" : "STORE_BROKEN", { path: folder, reason: message });
  }
}

/** Opens the layout of a store. Turns an empty folder into a store. */
async function openLayout(folder: string, wanted: string): Promise<ShardFunc> {
  await mkdir(folder, { recursive: true, mode: folderMode });
  const sharding = join(folder, shardingFile);
  const found = (await readFile(sharding, "utf8").catch(() => undefined))?.trim();
  if (found !== undefined && found !== wanted) {
    throw failure("DATASTORE_INVALID", {
      reason: `specified shard func '${wanted}' does not match repo shard func '${found}'`,
    });
  }
  const folderOf = shardFunc(wanted);
  if (found !== undefined) return folderOf;
  // An interrupted initialization leaves only drafts behind.
  if ((await readdir(folder)).some((name) => !name.startsWith(".") && name !== readmeFile)) {
    throw failure("DATASTORE_INVALID", { reason: `directory missing ${shardingFile} file: ${folder}` });
  }
  await writeAtomically(join(folder, readmeFile), readme, 0o444);
  await writeAtomically(sharding, `${wanted}\n`, 0o644);
  return folderOf;
}

class Flatfs implements BlockStore {
  readonly verifies: boolean;
  readonly joinsForms: boolean;
  readonly #namedAfter: NamedAfter;
  readonly #folder: string;
  readonly #folderOf: ShardFunc;
  readonly #usage: DiskUsage;
  readonly #fs: FlatfsFs;
  readonly #writer: Writer;
  /** Shared for `put`, exclusive for `delete`. */
  readonly #lock = new SharedLock();
  readonly #snapshots = new Set<FlatfsSnapshot>();
  readonly #room = new WeightedSemaphore(MAX_READING_BYTES);
  /** Buffers for comparisons, whose content is not needed afterwards. */
  readonly #probing = new BufferPool();
  #closing: Promise<void> | undefined;

  constructor(folder: string, folderOf: ShardFunc, usage: DiskUsage, options: FlatfsOptions) {
    const { fs = diskFs, bufferedBytes = 16 * 1024 * 1024, verifyOnRead = false, namedAfter = "cid" } = options;
    this.#namedAfter = namedAfter;
    this.joinsForms = namedAfter === "multihash";
    this.#folder = folder;
    this.#folderOf = folderOf;
    this.#usage = usage;
    this.#fs = fs;
    this.#writer = new Writer({ folder, folderOf, fs, usage, limit: bufferedBytes });
    this.verifies = verifyOnRead;
  }

  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    this.#mustBeOpen();
    const name = this.#nameOf(cid);
    const waiting = this.#writer.get(name);
    if (waiting !== undefined) return bytesOf(waiting);
    const bytes = await this.#read(name, buffers);
    if (bytes === undefined) return undefined;
    if (this.verifies && !(await matches(cid, bytes))) throw failure("BLOCK_CORRUPT", { cid: cid.toString() });
    return bytes;
  }

  async has(cid: CID): Promise<boolean> {
    return (await this.size(cid)) !== undefined;
  }

  #nameOf(cid: CID): string {
    return nameOf(cid, this.#namedAfter);
  }

  /**
   * Returns the stored forms with common codecs. When all forms share a file, returns the raw form,
   * with which the block is listed.
   */
  async forms({ multihash }: CID): Promise<readonly CID[]> {
    if (this.joinsForms) {
      const listed = makeCid(1, raw, multihash);
      return (await this.has(listed)) ? [listed] : [];
    }
    const possible = usualForms(multihash);
    const stored = await Promise.all(possible.map((form) => this.has(form)));
    return possible.filter((_, at) => stored[at]);
  }

  async size(cid: CID): Promise<number | undefined> {
    this.#mustBeOpen();
    const name = this.#nameOf(cid);
    return this.#writer.get(name)?.bytes.length ?? this.#sizeOf(name);
  }

  async put(blocks: readonly Block[], { onNew }: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    const letGo = await this.#lock.acquireShared();
    try {
      const look = async ({ cid, bytes, release }: Block) => {
        const block: PendingBlock = { name: this.#nameOf(cid), bytes, release };
        return { cid, block, found: await this.#probe(block) };
      };
      for await (const { cid, block, found } of mapConcurrent(blocks, MAX_CONCURRENT, look)) {
        await this.#writer.room();
        let { stored, damaged, flushes } = found;
        // Another call may have put the block in the meantime.
        while (!stored && flushes !== this.#writer.flushes) ({ stored, damaged, flushes } = await this.#probe(block));
        this.#mustBeOpen();
        if (stored || this.#writer.get(block.name) !== undefined) block.release?.();
        else {
          this.#writer.take(block);
          // The new file replaces one with other bytes.
          if (damaged === undefined) onNew?.(cid);
          else this.#usage.add(-damaged);
        }
      }
    } finally {
      letGo();
    }
  }

  /**
   * Checks whether a file with these bytes exists. Also returns the length of a file with other
   * bytes, and the number of flushes before the check.
   */
  async #probe({ name, bytes }: PendingBlock): Promise<{ stored: boolean; damaged?: number; flushes: number }> {
    const { flushes } = this.#writer;
    const size = await this.#sizeOf(name);
    if (size === undefined) return { stored: false, flushes };
    const into = this.#probing;
    // An unreadable file counts as missing.
    const found = size === bytes.length ? await this.#read(name, into).catch(() => undefined) : undefined;
    const stored = found !== undefined && Buffer.compare(found, bytes) === 0;
    if (found !== undefined) into.release(found);
    return stored ? { stored, flushes } : { stored, damaged: size, flushes };
  }

  async sync(): Promise<void> {
    this.#mustBeOpen();
    if (this.#writer.size > 0) await this.#writer.flush();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    this.#mustBeOpen();
    const letGo = await this.#lock.acquireExclusive();
    try {
      // Files that are being written would reappear.
      await this.#writer.idle();
      this.#mustBeOpen();
      // A snapshot only covers blocks that have a file.
      if (this.#snapshots.size > 0) await this.sync();
      const names = cids.map((cid) => this.#nameOf(cid));
      const gone = new Set(names.filter((name) => this.#writer.drop(name)));
      const changed = new Set<string>();
      const remove = async (name: string) => {
        const path = this.#writer.pathOf(name);
        for (const hold of this.#snapshots) await hold.retain(name, path);
        return { name, bytes: await this.#fs.remove(path) };
      };
      for await (const { name, bytes } of mapConcurrent(new Set(names), MAX_CONCURRENT, remove)) {
        if (bytes === undefined) continue;
        this.#usage.add(-bytes);
        gone.add(name);
        changed.add(this.#folderOf(name));
      }
      await this.#writer.syncFolders(changed);
      return names.map((name) => gone.delete(name));
    } catch (error) {
      throw this.#writer.failed(error);
    } finally {
      letGo();
    }
  }

  async *keys(): AsyncGenerator<CID> {
    this.#mustBeOpen();
    const waiting = this.#writer.names();
    yield* this.#known(waiting);
    for await (const names of this.#folders()) yield* this.#known(names.filter((name) => !waiting.has(name)));
  }

  async *#known(names: Iterable<string>): AsyncGenerator<CID> {
    for (const name of names) {
      const cid = cidNamed(name, this.#namedAfter);
      if (cid === undefined) continue;
      yield cid;
      this.#mustBeOpen();
    }
  }

  /** Yields the names of stored blocks, folder by folder. */
  async *#folders(): AsyncGenerator<string[]> {
    for await (const entry of await opendir(this.#folder)) {
      if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
      const files = await readdir(join(this.#folder, entry.name));
      this.#mustBeOpen();
      yield files.flatMap((file) => nameIn(file) ?? []);
      await nextTurn();
      this.#mustBeOpen();
    }
  }

  pathOf(cid: CID): string {
    return this.#writer.pathOf(this.#nameOf(cid));
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    this.#mustBeOpen();
    const waiting = this.#writer.names();
    let blocks = waiting.size;
    for await (const names of this.#folders()) for (const name of names) if (!waiting.has(name)) blocks += 1;
    return { blocks, bytes: this.#usage.bytes };
  }

  /** Does nothing, because a deleted block frees its space immediately. */
  async compact(signal?: AbortSignal): Promise<void> {
    this.#mustBeOpen();
    signal?.throwIfAborted();
  }

  async takeSnapshot(): Promise<StoreSnapshot> {
    this.#mustBeOpen();
    const folder = this.#folder;
    const folderOf = this.#folderOf;
    const { bytes } = this.#usage;
    const hold = new FlatfsSnapshot({ folder, folderOf, bytes, ended: () => this.#snapshots.delete(hold) });
    // From now on, the snapshot retains deleted blocks.
    this.#snapshots.add(hold);
    try {
      await this.sync();
      return hold;
    } catch (error) {
      await hold.release();
      throw error;
    }
  }

  async check(cid: CID): Promise<boolean | undefined> {
    this.#mustBeOpen();
    const name = this.#nameOf(cid);
    const bytes = this.#writer.get(name)?.bytes ?? (await this.#read(name));
    return bytes && matches(cid, bytes);
  }

  /** Closes the store. Writes blocks that were put without `sync`; rejects when that fails. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const letGo = await this.#lock.acquireExclusive();
    try {
      if (this.#writer.size > 0) await this.#writer.flush();
    } finally {
      this.#writer.close();
      await this.#writer.idle();
      await this.#usage.close();
      letGo();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw failure("STORE_CLOSED");
  }

  async #sizeOf(name: string): Promise<number | undefined> {
    const found = await stat(this.#writer.pathOf(name)).catch((error) => this.#missing(error));
    return found?.size;
  }

  async #read(name: string, buffers: BufferPool = unshared): Promise<Uint8Array | undefined> {
    const file = await open(this.#writer.pathOf(name)).catch((error) => this.#missing(error));
    if (file === undefined) return undefined;
    let acquired = 0;
    try {
      const { size } = await file.stat();
      await this.#room.acquire(size);
      acquired = size;
      const into = buffers.take(size);
      const { bytesRead } = await file.read(into, 0, size, 0);
      return into.subarray(0, bytesRead);
    } catch (error) {
      throw this.#broken(error);
    } finally {
      this.#room.release(acquired);
      await file.close();
    }
  }

  /** Returns undefined when the file does not exist. */
  #missing(error: NodeJS.ErrnoException): undefined {
    if (error.code !== "ENOENT") throw this.#broken(error);
  }

  #broken(error: unknown): NodeError {
    return failure("STORE_BROKEN", { path: this.#folder, reason: (error as Error).message }, error);
  }
}

/** Returns the bytes of a block; a copy when the owner may overwrite them. */
const bytesOf = ({ bytes, release }: PendingBlock): Uint8Array => (release === undefined ? bytes : ownBytes(bytes));
