import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { identity } from "../../../formats/cid/hashes.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import type { MakeRoom } from "../../disk_reserve.ts";
import { CommitFailed } from "../../lmdb/open.ts";
import type { BufferPool } from "../buffer_pool.ts";
import type { Block, BlockStore, PutOptions, Span, StoreSnapshot } from "../store.ts";
import { BlockReader } from "./block_reader.ts";
import { compactSegments } from "./compaction.ts";
import { DiskSpace, segmentLength } from "./disk_space.ts";
import { diskFs, SegmentFiles, type SegmentFs, withRoom } from "./files.ts";
import {
  type BlockLocation,
  cidOf,
  formOf,
  keyOf,
  MAX_MULTIHASH,
  nameOf,
  recordSections,
  type Statement,
} from "./format.ts";
import type { IndexOverlay } from "./index_overlay.ts";
import { Log } from "./log.ts";
import { recover } from "./recovery.ts";
import type { Notice } from "./replay.ts";
import { SegmentIndex, type Stored } from "./segment_index.ts";
import { snapshotSegments } from "./snapshot.ts";

export interface SegmentStoreOptions {
  /**
   * Length of a segment in bytes, at most 2 GiB. By default half a GiB, or less on small disks. It
   * may differ from the previous opening. The same number of bytes on the disk is reserved for
   * maintenance.
   */
  readonly segmentBytes?: number;
  /** Maximum bytes in memory that are put and not written yet; 4 MiB by default. */
  readonly bufferedBytes?: number;
  /**
   * Whether to check every block that is read from the disk. The first reads check it against its
   * CID, later ones against a checksum of bytes that were right.
   */
  readonly verifyOnRead?: boolean;
  /**
   * Called with a sentence about each repair: damage that was set aside, an index that was rebuilt.
   */
  readonly onNotice?: Notice;
  /** The file system under the segments; tests inject faults here. */
  readonly fs?: SegmentFs;
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}

const readOnlyOrFull = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);
const MAX_SEGMENT = 2 ** 31;
const pageSize = 512;
/** Maximum number of forms of a multihash: all of them must fit into one record. */
const MAX_FORMS = 1024;
/** Milliseconds after the last flush until the index is updated. */
const INDEX_DELAY_MS = 1000;

/**
 * Opens a store of blocks in append-only segments (CAR files) with an index in LMDB. Everything is
 * in one folder: `00000001.car`, ... and `index/`. The segments are sufficient: an index that was
 * deleted is rebuilt from them.
 *
 * Only one process may use the store at a time: the caller must have the lock of the repo.
 *
 * @throws NodeError STORE_FULL when the folder cannot be written to, STORE_BROKEN when it cannot be
 * read
 */
export async function openSegmentStore(folder: string, options: SegmentStoreOptions = {}): Promise<SegmentStore> {
  const { onNotice: notice = () => {} } = options;
  const { makeRoom } = options;
  const fs = withRoom(options.fs ?? diskFs, makeRoom);
  const files = new SegmentFiles(folder, fs);
  let index: SegmentIndex | undefined;
  try {
    await files.list();
    const { segmentBytes = await segmentLength(fs, folder) } = options;
    index = await SegmentIndex.open(join(folder, "index"), notice, makeRoom);
    return new SegmentStore(folder, files, await recover(files, index, notice), {
      ...options,
      fs,
      segmentBytes,
      onNotice: notice,
    });
  } catch (error) {
    await files.close();
    await index?.close().catch(() => {});
    if (error instanceof NodeError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const full = error instanceof CommitFailed || readOnlyOrFull.has(code ?? "");
    throw failure(full ? "STORE_FULL" : "STORE_BROKEN", { path: folder, reason: message });
  }
}

/** The highest `removals` of all stores of this process. */
let lastRemoval = 0;

export class SegmentStore implements BlockStore {
  /** Later reads verify blocks by a checksum. */
  readonly verifies = false;
  readonly #folder: string;
  readonly #files: SegmentFiles;
  readonly #overlay: IndexOverlay;
  readonly #log: Log;
  readonly #reads: BlockReader;
  readonly #space: DiskSpace;
  readonly #notice: Notice;
  removals = (lastRemoval += 1);
  #compacting: Promise<void> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** See `openSegmentStore`. */
  constructor(
    folder: string,
    files: SegmentFiles,
    { overlay, end, lengths }: Awaited<ReturnType<typeof recover>>,
    options: SegmentStoreOptions & Required<Pick<SegmentStoreOptions, "fs" | "segmentBytes" | "onNotice">>,
  ) {
    this.#folder = folder;
    this.#files = files;
    this.#overlay = overlay;
    this.#reads = new BlockReader(files, {
      verifies: options.verifyOnRead === true,
      failed: (error) => failure("STORE_BROKEN", { path: folder, reason: error.message }, error),
    });
    this.#notice = options.onNotice;
    const { bufferedBytes = 4 * 1024 * 1024 } = options;
    const segmentBytes = Math.min(options.segmentBytes, MAX_SEGMENT);
    this.#log = new Log(files, { segmentBytes, bufferedBytes, onSynced: () => this.#synced() }, end, lengths);
    const unwritten = () => this.#log.buffered;
    this.#space = new DiskSpace({ folder, fs: options.fs, reserve: segmentBytes, unwritten });
  }

  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const location = this.#find(cid)?.location;
    if (location === undefined) return undefined;
    return this.#reads.read(cid, location, buffers);
  }

  getSoon(cid: CID, buffers?: BufferPool): Uint8Array | Promise<Uint8Array> | undefined {
    const location = this.#find(cid)?.location;
    return location && this.#reads.readSoon(cid, location, buffers);
  }

  async getPart(cid: CID, span: Span, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const location = this.#find(cid)?.location;
    if (location === undefined) return undefined;
    return this.#reads.readPart(cid, location, span, buffers);
  }

  peek(cids: readonly CID[], buffers: BufferPool): (Uint8Array | undefined)[] {
    return this.#reads.peek(
      cids,
      cids.map((cid) => this.#find(cid)?.location),
      buffers,
    );
  }

  async has(cid: CID): Promise<boolean> {
    return this.#find(cid) !== undefined;
  }

  async size(cid: CID): Promise<number | undefined> {
    return this.#find(cid)?.location?.length;
  }

  async put(blocks: readonly Block[], { upkeep = false, onNew }: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    // Checks all blocks first, so that adjacent ones are read together.
    const looks = blocks.map((block) => this.#damagedCopyOf(block));
    for (const [at, block] of blocks.entries()) {
      const { cid, bytes } = block;
      const look = looks[at];
      const damaged = look instanceof Promise ? await look : look;
      const isListed = damaged === undefined && this.#find(cid) !== undefined;
      const needsRoom = !upkeep && !this.#space.tryReserve(bytes.length) && !isListed;
      if (needsRoom) await this.#space.reserve(bytes.length);
      if (!this.#log.hasRoom) await this.#log.room();
      if (this.#overlay.isCrowded) await this.#syncAll();
      this.#mustBeOpen();
      if (this.#put(block, damaged)) onNew?.(cid);
    }
    if (this.#overlay.isFull) this.#flush();
  }

  async sync(): Promise<void> {
    this.#mustBeOpen();
    await this.#log.sync();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    this.#mustBeOpen();
    const changed = new Map<string, Statement>();
    const wasStored = cids.map((cid) => {
      const { bytes } = cid.multihash;
      const forms = (changed.get(keyOf(bytes)) ?? this.#overlay.find(bytes))?.forms ?? [];
      const form = formOf(cid);
      if (!forms.includes(form)) return false;
      changed.set(keyOf(bytes), { multihash: ownBytes(bytes), forms: forms.filter((other) => other !== form) });
      return true;
    });
    this.#recordForms([...changed.values()]);
    this.removals = lastRemoval += 1;
    await this.#log.sync();
    return wasStored;
  }

  async forms({ multihash }: CID): Promise<readonly CID[]> {
    this.#mustBeOpen();
    const { bytes } = multihash;
    return (this.#overlay.find(bytes)?.forms ?? []).map((form) => cidOf(form, ownBytes(bytes)));
  }

  async *keys(): AsyncGenerator<CID> {
    this.#mustBeOpen();
    // Waiting entries come first, because the index changes while it is read page by page.
    const recent = this.#overlay.pendingEntries();
    const seen = new Set(recent.map(({ multihash }) => keyOf(multihash)));
    for (let page = recent, after: Uint8Array | undefined; page.length > 0 || page === recent; ) {
      for (const { multihash } of page) {
        if (page !== recent && seen.has(keyOf(multihash))) continue;
        for (const form of this.#overlay.find(multihash)?.forms ?? []) {
          yield cidOf(form, multihash);
          this.#mustBeOpen();
        }
      }
      await nextTurn();
      this.#mustBeOpen();
      page = this.#overlay.index.page(after, pageSize);
      after = page.at(-1)?.multihash;
    }
  }

  pathOf(cid: CID): string | undefined {
    const location = this.#find(cid)?.location;
    return location && nameOf(location.segment);
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    this.#mustBeOpen();
    let bytes = await this.#overlay.index.bytes();
    for (const length of this.#log.lengths.values()) bytes += length;
    return { blocks: this.#overlay.blocks, bytes };
  }

  compact(signal?: AbortSignal): Promise<void> {
    const check = () => {
      this.#mustBeOpen();
      signal?.throwIfAborted();
    };
    // Runs one compaction at a time.
    this.#compacting = this.#compacting
      .catch(() => {})
      .then(async () => {
        check();
        const fits = (bytes: number) => this.#space.fits(bytes);
        const parts = { files: this.#files, overlay: this.#overlay, log: this.#log, notice: this.#notice, check, fits };
        await compactSegments(parts);
      });
    return this.#compacting;
  }

  async check(cid: CID): Promise<boolean | undefined> {
    const location = this.#find(cid)?.location;
    if (location === undefined) return undefined;
    return this.#reads.check(cid, location);
  }

  takeSnapshot(): Promise<StoreSnapshot> {
    this.#mustBeOpen();
    return snapshotSegments(this.#files, this.#log);
  }

  /** Closes the store. Writes blocks that were put without `sync`; rejects when that fails. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#compacting.catch(() => {});
    try {
      await this.#log.sync();
      // The log has everything: the next start updates the index.
      await this.#overlay.apply(this.#log.synced).catch(() => {});
    } finally {
      await this.#log.close();
      await this.#overlay.close();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw failure("STORE_CLOSED");
  }

  /** Returns the state of the multihash if this form of it is stored. */
  #find(cid: CID): Stored | undefined {
    this.#mustBeOpen();
    const stored = this.#overlay.find(cid.multihash.bytes);
    return stored?.forms.includes(formOf(cid)) ? stored : undefined;
  }

  /**
   * Returns the location of a copy that is missing or has other bytes. A put of the block must not
   * rely on it.
   */
  #damagedCopyOf({ cid, bytes }: Block): BlockLocation | undefined | Promise<BlockLocation | undefined> {
    const location = this.#overlay.find(cid.multihash.bytes)?.location;
    if (location === undefined) return undefined;
    const holds = this.#reads.holds(location, bytes);
    if (typeof holds === "boolean") return holds ? undefined : location;
    // An unreadable copy counts as damaged.
    return holds.catch(() => false).then((isThere) => (isThere ? undefined : location));
  }

  /** Puts a block, and replaces a damaged copy. Returns whether this form was not stored before. */
  #put(block: Block, damaged: BlockLocation | undefined): boolean {
    const { cid, release } = block;
    const { multihash } = cid;
    if (multihash.code === identity.code || multihash.bytes.length > MAX_MULTIHASH) {
      throw failure("BLOCK_NOT_STORABLE", {
        cid: String(cid),
        reason: "its multihash is the block itself, or too long to be a key",
      });
    }
    const form = formOf(cid);
    const stored = this.#overlay.find(multihash.bytes);
    const isStored = stored?.forms.includes(form) === true;
    if (stored !== undefined && damaged !== undefined && isSameLocation(stored.location, damaged)) {
      const { location, multihash: ownMultihash } = this.#log.append(block);
      const forms = isStored ? stored.forms : [...stored.forms, form];
      this.#overlay.set(ownMultihash, stored, { forms, location }, this.#log.end);
      // With this record, a rebuild of the index ignores the damaged copy.
      if (forms.length > 1) this.#recordForms([{ multihash: ownMultihash, forms }]);
      this.#notice(`${cid} was damaged in ${nameOf(damaged.segment)}, and is stored again`);
      return !isStored;
    }
    if (isStored) {
      release?.();
      return false;
    }
    if (stored !== undefined) {
      if (stored.forms.length >= MAX_FORMS)
        throw failure("BLOCK_NOT_STORABLE", { cid: String(cid), reason: "it has too many other forms" });
      this.#recordForms([{ multihash: ownBytes(multihash.bytes), forms: [...stored.forms, form] }]);
      release?.();
      return true;
    }
    const appended = this.#log.append(block);
    this.#overlay.set(appended.multihash, undefined, { forms: [form], location: appended.location }, this.#log.end);
    return true;
  }

  /** Records which forms of these multihashes are stored from now on. */
  #recordForms(statements: readonly Statement[]): void {
    for (const { bytes, tombstones, statements: said } of recordSections(statements)) {
      this.#log.appendRecord(bytes);
      this.#overlay.addRecord(bytes.length, tombstones, this.#log.end);
      for (const { multihash, forms } of said) {
        const old = this.#overlay.find(multihash);
        const stored = forms.length === 0 ? undefined : { forms, location: old?.location };
        this.#overlay.set(multihash, old, stored, this.#log.end);
      }
    }
  }

  /** Resolves when everything that was put is durable and in the index. */
  async #syncAll(): Promise<void> {
    await this.#log.sync();
    try {
      await this.#overlay.apply(this.#log.synced);
    } catch (error) {
      throw failure("STORE_FULL", { path: this.#folder, reason: (error as Error).message }, error);
    }
  }

  #synced(): void {
    if (this.#overlay.isDue(this.#log.synced)) this.#updateIndex();
    else if (this.#overlay.hasPending) this.#idle ??= setTimeout(() => this.#updateIndex(), INDEX_DELAY_MS).unref();
  }

  /**
   * Flushes small blocks before they have enough bytes for it, because the index only contains
   * durable data.
   */
  #flush(): void {
    this.#flushing ??= this.#log
      .sync()
      .catch(() => {})
      .finally(() => {
        this.#flushing = undefined;
      });
  }

  /**
   * Updates the index to the durable end of the log. Failures do not matter: the log has
   * everything, and the next call tries again.
   */
  #updateIndex(): void {
    clearTimeout(this.#idle);
    this.#idle = undefined;
    if (this.#closing === undefined) this.#overlay.apply(this.#log.synced).catch(() => {});
  }
}

const isSameLocation = (one: BlockLocation | undefined, other: BlockLocation): boolean =>
  one?.segment === other.segment && one.offset === other.offset;
