/** Pins: the DAGs that garbage collection retains. They are stored in the metadata store. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { scanLinks } from "../../formats/dag_pb/scan_links.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { keyPages, pagedRange } from "../../storage/metadata/paged_range.ts";
import type { MetadataStore, MetadataWriter } from "../../storage/metadata/store.ts";
import type { SharedLock } from "../../util/async/shared_lock.ts";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import { nodeReader } from "../dag/reader.ts";
import { walk, walkPages } from "../dag/walk.ts";

/** The kinds of pins that are stored. Indirect pins follow from recursive ones. */
export type PinMode = "recursive" | "direct";

export interface FetchOptions {
  readonly signal?: AbortSignal | undefined;
  readonly offline?: boolean | undefined;
  /** Called with the number of blocks found so far, and their size in bytes. */
  readonly progress?: ((blocks: number, bytes: number) => void) | undefined;
}

export interface PinOptions extends FetchOptions {
  /** Name of the pin, of at most `MAX_PIN_NAME` bytes. Without it, an existing name is removed. */
  readonly name?: string | undefined;
  /**
   * Owner of a recursive pin, who can remove it by `release`. A pin that somebody else also
   * requests, or has requested before, has no owner from then on.
   */
  readonly owner?: string | undefined;
}

/** Number of recursive pins whose blocks are looked up together. */
const PEEKED_ROOTS = 32;

/**
 * Whether a root has nothing below it, as many small files do. Returns false if only a walk can
 * decide it.
 */
function isAlone(root: CID, bytes: Uint8Array | undefined): boolean {
  if (root.code === raw) return true;
  return root.code === dagPb && bytes !== undefined && scanLinks(bytes)?.length === 0;
}

/** Prefix of the keys of pins. */
export const pinPrefix = (mode: PinMode) => `pins/${mode}/`;
/**
 * Maximum number of characters of a CID that can be pinned, because the CID is part of a key of the
 * metadata store.
 */
const MAX_PINNED = 1900;

const canBePinned = (cid: CID): boolean => cid.toString().length <= MAX_PINNED;

/**
 * Returns the key of a pin. The value is the name of its owner, or empty without an owner.
 *
 * @throws NodeError for a CID that is too long, as identity CIDs with much content are
 */
export function pinKey(mode: PinMode, cid: CID): string {
  if (canBePinned(cid)) return pinPrefix(mode) + cid;
  throw failure("CID_NOT_PINNABLE", { length: cid.toString().length, most: MAX_PINNED });
}

const empty = new Uint8Array();

/** Prefix of the keys of the names of pins. */
export const PIN_NAMES = "pinnames/";
const nameKey = (cid: CID): string => PIN_NAMES + cid;
/** Maximum length of the name of a pin in bytes. */
export const MAX_PIN_NAME = 255;

/** @throws NodeError for a name that is too long */
export function requirePinName(name: string | undefined): void {
  const length = Buffer.byteLength(name ?? "");
  if (length > MAX_PIN_NAME)
    throw failure("OPTION_INVALID", { reason: `pin name is ${length} bytes (max ${MAX_PIN_NAME} bytes)` });
}

function setName(writer: MetadataWriter, cid: CID, name: string | undefined): void {
  if (name) writer.put(nameKey(cid), Buffer.from(name));
  else writer.delete(nameKey(cid));
}

interface Pinned {
  readonly owner?: string | undefined;
  readonly name?: string | undefined;
}

/** Sets the only pin of a CID: a CID has one pin mode at a time. */
function set(writer: MetadataWriter, cid: CID, mode: PinMode, { owner, name }: Pinned = {}): void {
  // This comes first, because it rejects CIDs that are too long for a key.
  const key = pinKey(mode, cid);
  setName(writer, cid, name);
  const wasOther = writer.delete(pinKey(mode === "recursive" ? "direct" : "recursive", cid));
  const current = writer.get(key);
  const isAlone = mode === "recursive" && !wasOther && (current === undefined || isOwnedBy(current, owner));
  writer.put(key, isAlone && owner !== undefined ? Buffer.from(owner) : empty);
}

/**
 * Adds a pin from another store. `value` is the value of its key there. A direct pin does not
 * replace a recursive one. An existing name stays.
 */
export function mergePin(writer: MetadataWriter, cid: CID, mode: PinMode, value: Uint8Array): void {
  if (mode === "direct" && writer.has(pinKey("recursive", cid))) return;
  const name = Buffer.from(writer.get(nameKey(cid)) ?? empty).toString();
  set(writer, cid, mode, { name, owner: value.length === 0 ? undefined : Buffer.from(value).toString() });
}

const isOwnedBy = (value: Uint8Array, owner: string | undefined): boolean => Buffer.from(value).toString() === owner;

const pinnedAlready = (cid: CID) => failure("PINNED_ALREADY", { reason: `${cid} already pinned recursively` });

/** The pins of a node. Changes are durable when a call resolves. */
export class Pins {
  readonly #blocks: BlockService;
  readonly #metadata: MetadataStore;
  readonly #lock: SharedLock;
  readonly #guards = new Set<() => Iterable<CID>>();

  /** @param lock the lock of garbage collection */
  constructor(blocks: BlockService, metadata: MetadataStore, lock: SharedLock) {
    this.#blocks = blocks;
    this.#metadata = metadata;
    this.#lock = lock;
  }

  async mode(cid: CID): Promise<PinMode | undefined> {
    if (!canBePinned(cid)) return undefined;
    if (await this.#metadata.has(pinKey("recursive", cid))) return "recursive";
    return (await this.#metadata.has(pinKey("direct", cid))) ? "direct" : undefined;
  }

  /**
   * Yields the stored pins of one mode, sorted by the text of their CIDs. Suitable for slow readers
   * (see `pagedRange`).
   */
  async *list(mode: PinMode): AsyncGenerator<CID, void, undefined> {
    for await (const text of this.texts(mode)) yield parseCid(text);
  }

  /** Yields the same as `list`, as texts. For callers that show few of many. */
  async *texts(mode: PinMode): AsyncGenerator<string, void, undefined> {
    for await (const page of this.pagesOfTexts(mode)) yield* page;
  }

  /** Yields the same as `texts`, in pages. For callers that show all. */
  async *pagesOfTexts(mode: PinMode): AsyncGenerator<readonly string[], void, undefined> {
    const prefix = pinPrefix(mode);
    for await (const page of keyPages(this.#metadata, prefix)) yield page.map((key) => key.slice(prefix.length));
  }

  /**
   * Fetches missing blocks, then pins. The caller must not hold the lock, because fetching may take
   * long and would make others wait.
   *
   * @throws NodeError at a missing block, or when a recursive pin would become a direct one
   */
  async add(cid: CID, mode: PinMode, options: PinOptions = {}): Promise<void> {
    const { name, owner } = options;
    requirePinName(name);
    const before = await this.#dropOwner(cid, owner);
    if (mode === "recursive" && before === "recursive") {
      // A call with an owner only requests the pin, and does not change its name.
      const isRenamed = owner === undefined && (await this.name(cid)) !== (name ?? "");
      if (isRenamed) await this.#metadata.transaction((writer) => setName(writer, cid, name));
      return;
    }
    if (mode === "direct" && before === "recursive") throw pinnedAlready(cid);
    await this.#fetchThenPin(cid, mode, options, (writer) => {
      if (mode === "direct" && writer.has(pinKey("recursive", cid))) throw pinnedAlready(cid);
      set(writer, cid, mode, { owner, name });
    });
  }

  /** Returns the name of a pin, or "". */
  async name(cid: CID): Promise<string> {
    return Buffer.from((await this.#metadata.get(nameKey(cid))) ?? empty).toString();
  }

  /** Yields all names, with the texts of the CIDs of their pins. */
  async *names(): AsyncGenerator<readonly [cid: string, name: string], void, undefined> {
    for await (const [key, name] of pagedRange(this.#metadata, PIN_NAMES)) {
      yield [key.slice(PIN_NAMES.length), Buffer.from(name).toString()];
    }
  }

  /**
   * Changes or removes the name of a pin. Does nothing for a CID that is not pinned. @throws
   * NodeError for a name that is too long
   */
  async rename(cid: CID, name: string): Promise<void> {
    requirePinName(name);
    await this.#metadata.transaction((writer) => {
      if (writer.has(pinKey("recursive", cid)) || writer.has(pinKey("direct", cid))) setName(writer, cid, name);
    });
  }

  /** Returns the mode of a pin. If the pin belongs to another owner, it has no owner afterwards. */
  async #dropOwner(cid: CID, owner?: string): Promise<PinMode | undefined> {
    const key = pinKey("recursive", cid);
    const current = await this.#metadata.get(key);
    if (current !== undefined && current.length > 0 && !isOwnedBy(current, owner)) {
      await this.#metadata.compareAndSet(key, current, empty);
    }
    return this.mode(cid);
  }

  /** Fetches the blocks to pin, and protects them until `change` is durable. */
  async #fetchThenPin(
    cid: CID,
    mode: PinMode,
    options: FetchOptions,
    change: (writer: MetadataWriter) => void,
  ): Promise<void> {
    const unguard = this.guard(() => [cid]);
    const fetch = async () => {
      if (mode === "recursive") await this.#fetch(cid, options);
      else await nodeReader(this.#blocks, options)(cid);
    };
    const finish = async () => {
      await this.#blocks.pending?.write();
      // After a crash no pin may exist without its blocks.
      await this.#blocks.store.sync();
      return this.#metadata.transaction(change);
    };
    await this.#lock.retryOptimistically(fetch, finish, options.signal).finally(unguard);
  }

  /**
   * Pins recursively roots that are complete on this machine, such as those just added. Durable
   * when it resolves. The caller has held a share of the lock since the blocks were put.
   */
  async keep(cids: readonly CID[], name?: string): Promise<void> {
    await this.#metadata.transaction((writer) => {
      for (const cid of cids) set(writer, cid, "recursive", { name });
    });
  }

  /**
   * Protects local blocks below `roots()` until they are pinned. `roots` is called when a
   * collection begins. The returned function ends the protection.
   */
  guard(roots: () => Iterable<CID>): () => void {
    this.#guards.add(roots);
    return () => this.#guards.delete(roots);
  }

  /** Yields the roots that are protected now. */
  *guarded(): Generator<CID, void, undefined> {
    for (const roots of this.#guards) yield* roots();
  }

  /**
   * Makes sure that all blocks below are on this machine. Existing raw leaves are not read, unless
   * they are stored only under another codec. Reading such a leaf stores it under its own CID, so
   * that it survives the removal of the other block.
   */
  async #fetch(cid: CID, options: FetchOptions): Promise<void> {
    const { signal, progress } = options;
    const { store } = this.#blocks;
    const read = nodeReader(this.#blocks, options);
    let blocks = 0;
    let size = 0;
    for await (const { cid: below, bytes } of walk(cid, { read, signal, skipLeaves: true })) {
      const isRead = bytes === undefined && !(await store.has(below));
      const length = (isRead ? await read(below) : bytes)?.length;
      if (progress === undefined) continue;
      blocks += 1;
      size += length ?? (await this.#blocks.size(below)) ?? 0;
      progress(blocks, size);
    }
  }

  /** @throws NodeError when the CID is not pinned in that mode */
  async remove(cid: CID, recursive: boolean): Promise<void> {
    if (!canBePinned(cid)) throw failure("NOT_PINNED", { reason: "not pinned or pinned indirectly" });
    await this.#metadata.transaction((writer) => {
      const isRecursive = writer.has(pinKey("recursive", cid));
      if (isRecursive && !recursive) throw failure("PINNED", { reason: `${cid} is pinned recursively` });
      if (!writer.delete(pinKey(isRecursive ? "recursive" : "direct", cid))) {
        throw failure("NOT_PINNED", { reason: "not pinned or pinned indirectly" });
      }
      setName(writer, cid, undefined);
    });
  }

  /** Removes a pin of this owner. Other pins are not changed. */
  async release(cid: CID, owner: string): Promise<void> {
    await this.#metadata.transaction((writer) => this.releaseWithin(writer, cid, owner));
  }

  /** Like `release`, within a transaction of the metadata. */
  releaseWithin(writer: MetadataWriter, cid: CID, owner: string): void {
    const key = pinKey("recursive", cid);
    const current = writer.get(key);
    if (current === undefined || !isOwnedBy(current, owner)) return;
    writer.delete(key);
    setName(writer, cid, undefined);
  }

  /** Whether a CID is pinned recursively, within a transaction of the metadata. */
  isPinnedWithin(writer: MetadataWriter, cid: CID): boolean {
    return canBePinned(cid) && writer.has(pinKey("recursive", cid));
  }

  /**
   * Replaces the recursive pin of `from` by one of `to`, which gets its name. Fetches only blocks
   * that are not below `from`. For the lock see `add`.
   */
  async update(from: CID, to: CID, unpin: boolean, options: FetchOptions = {}): Promise<void> {
    const check = (isPinned: boolean) => {
      if (!isPinned) throw failure("NOT_PINNED", { reason: "'from' cid was not recursively pinned already" });
    };
    check((await this.mode(from)) === "recursive");
    if (from.equals(to)) return;
    if ((await this.#dropOwner(to)) === "recursive")
      throw failure("PINNED_ALREADY", { reason: "'to' cid was already recursively pinned" });
    await nodeReader(
      this.#blocks,
      options,
    )(to).catch((error: unknown) => {
      throw error instanceof NodeError ? reworded(error, `get ${to}: ${error.message}`) : error;
    });
    await this.#fetchThenPin(to, "recursive", options, (writer) => {
      check(writer.has(pinKey("recursive", from)));
      const name = Buffer.from(writer.get(nameKey(from)) ?? empty).toString();
      set(writer, to, "recursive", { name });
      if (!unpin) return;
      writer.delete(pinKey("recursive", from));
      setName(writer, from, undefined);
    });
  }

  /**
   * Yields the CIDs below recursive pins, each once, except those of `unwanted`. Reads local blocks
   * only.
   */
  async *indirect(unwanted: CidSet, signal?: AbortSignal): AsyncGenerator<CID, void, undefined> {
    const { buffers } = this.#blocks;
    const read = nodeReader(this.#blocks, { offline: true, signal, evenDenied: true, buffers });
    const walked = nodeReader(this.#blocks, { offline: true, signal, evenDenied: true });
    const seen = new CidSet();
    for await (const page of this.pagesOfTexts("recursive")) {
      signal?.throwIfAborted();
      const roots = page.map(parseCid);
      for (let at = 0; at < roots.length; at += PEEKED_ROOTS) {
        const some = roots.slice(at, at + PEEKED_ROOTS);
        const here = read.peek?.(some) ?? [];
        for (const [index, root] of some.entries()) {
          if (isAlone(root, here[index])) {
            if (seen.add(root) && !unwanted.has(root)) yield root;
            continue;
          }
          const how = { read: walked, seen, signal, skipLeaves: true, lenient: true };
          for await (const blocks of walkPages(root, how)) {
            for (const { cid } of blocks) if (!unwanted.has(cid)) yield cid;
          }
        }
        for (const bytes of here) if (bytes !== undefined) buffers.release(bytes);
      }
      await nextTurn();
    }
  }

  /** Returns the first recursive pin above each of these CIDs, by the text of the CID. */
  async rootsAbove(cids: readonly CID[], signal?: AbortSignal): Promise<ReadonlyMap<string, CID>> {
    const found = new Map<string, CID>();
    if (cids.length === 0) return found;
    const requested = new Set(cids.map(String));
    const wanted = new Set(requested);
    const read = nodeReader(this.#blocks, { offline: true, signal, evenDenied: true });
    const shared = new CidSet();
    for await (const root of this.list("recursive")) {
      if (wanted.size === 0) return found;
      // A requested root must still be found below other roots after its own walk.
      const seen = requested.has(root.toString()) ? new CidSet() : shared;
      for await (const { cid } of walk(root, { read, seen, signal, skipLeaves: true, lenient: true })) {
        if (!cid.equals(root) && wanted.delete(cid.toString())) found.set(cid.toString(), root);
        if (wanted.size === 0) return found;
      }
    }
    return found;
  }
}
