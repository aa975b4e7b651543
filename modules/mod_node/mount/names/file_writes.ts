/** Writes files below the node's own names. */

import { ByteReader } from "../../content/mfs/byte_reader.ts";
import { Folder } from "../../content/mfs/folder.ts";
import { lookup } from "../../content/mfs/lookup.ts";
import { changeFacts } from "../../content/mfs/operations.ts";
import type { NamespacePath } from "../../content/mfs/path.ts";
import { editFile, writeFile } from "../../content/mfs/write_file.ts";
import { fileSize, type UnixfsNode, unixfsNode } from "../../content/unixfs/node.ts";
import { readFile } from "../../content/unixfs/read.ts";
import { unixNow } from "../../content/unixfs/times.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import { withBits } from "../../formats/unixfs/mode.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { type EntryName, FuseError } from "../fuse/file_system.ts";
import type { NewAttributes } from "../fuse/wire.ts";
import { type NameNode, pathOf } from "./name_node.ts";
import { asFuseError, type NameDeps } from "./name_tree.ts";
import { CLOSE_TIMEOUT_MS, type OwnTree } from "./own_tree.ts";
import { SequentialWrite } from "./sequential_write.ts";

/**
 * A file counts as completely written after `IDLE_MS` without a write. After `MAX_WRITE_MS` the
 * written part is stored in any case.
 */
const IDLE_MS = 1000;
const MAX_WRITE_MS = 10_000;
/** Maximum size of a file in bytes, because zeros of a gap are stored, too. */
const MAX_FILE = 2 ** 40;

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}

interface NodeChange {
  readonly offset: number;
  readonly truncate?: boolean;
  readonly create?: boolean;
  readonly signal?: AbortSignal;
}

/** A node that can be written. */
interface WritableNode {
  readonly node: NameNode;
  readonly tree: OwnTree;
}

export class FileWrites {
  readonly #deps: NameDeps;
  readonly #nodes = new Set<NameNode>();
  readonly #timer = setInterval(() => this.#settleOld(), IDLE_MS).unref();
  /**
   * Writers share this lock, because they rely on the paths of files. Moves and removals hold it
   * exclusively.
   */
  readonly #positions = new SharedLock();

  constructor(deps: NameDeps) {
    this.#deps = deps;
  }

  /** Makes an empty file. */
  async create(tree: OwnTree, path: NamespacePath, signal: AbortSignal): Promise<void> {
    await this.#write(tree, path, nothing(), { offset: 0, create: true, signal });
    if (!this.#deps.imports.storesTime) return;
    const mtime = unixNow();
    await changeFacts(tree.files, path, ({ mode }) => ({ mode, mtime }), { ...tree.changing, signal });
  }

  /** Resolves when the bytes were accepted. They belong to this class from then on. */
  write(node: NameNode, offset: number, bytes: Uint8Array): Promise<void> {
    return this.#positions.withShared(async () => {
      const target = targetOf(node);
      if (offset + bytes.length > MAX_FILE) throw new FuseError("EFBIG");
      // Several callers may write at different offsets at the same time.
      while (node.writing !== undefined && node.writing.end !== offset) await this.settle(node);
      this.#nodes.add(node);
      node.writing ??= new SequentialWrite(offset, this.#deps.blocks.buffers, (content) =>
        this.#change(target, content, { offset }),
      );
      await asFuseError(node.writing.put(bytes));
    });
  }

  resize(node: NameNode, size: number, signal: AbortSignal): Promise<void> {
    return this.#positions.withShared(async () => {
      const target = targetOf(node);
      await this.settle(node);
      const { file } = node;
      if (file === undefined) throw new FuseError("EISDIR");
      if (size > MAX_FILE) throw new FuseError("EFBIG");
      const was = fileSize(file);
      if (size === was) return;
      const shorter = size < was;
      const content = shorter && size > 0 ? readFile(file, this.#deps.reader({ signal }), { length: size }) : nothing();
      await this.#change(target, content, { offset: shorter ? 0 : size, truncate: shorter, signal });
      await this.#refresh(target);
    }, signal);
  }

  /** Sets mode and time of a node that has a name, as far as they are stored. */
  setModeAndTime(node: NameNode, given: Pick<NewAttributes, "mode" | "mtime">, signal: AbortSignal): Promise<void> {
    return this.#positions.withShared(async () => {
      const { storesMode, storesTime } = this.#deps.imports;
      const mode = storesMode && node.kind !== "symlink" ? given.mode : undefined;
      const mtime = storesTime ? given.mtime : undefined;
      const { tree } = node;
      if (tree === undefined || node.unlinked || (mode === undefined && mtime === undefined)) return;
      await this.settle(node);
      const time = mtime === "now" ? unixNow() : mtime;
      const change = (facts: ModeAndTime) => ({
        mode: mode === undefined ? facts.mode : withBits(facts.mode, mode),
        mtime: time ?? facts.mtime,
      });
      await asFuseError(changeFacts(tree.files, pathOf(node), change, { ...tree.changing, signal }));
      await this.#refresh({ node, tree });
    }, signal);
  }

  /** Resolves when the written content is part of the tree. */
  settle(node: NameNode): Promise<void> {
    const { writing, tree, settling = Promise.resolve() } = node;
    if (writing === undefined || tree === undefined) return settling;
    node.writing = undefined;
    const finish = async () => {
      await settling.catch(() => undefined);
      await asFuseError(writing.finish());
      await this.#refresh({ node, tree });
    };
    const done = finish().finally(() => {
      if (node.settling === done) node.settling = undefined;
      if (node.writing === undefined) this.#nodes.delete(node);
    });
    node.settling = done;
    return done;
  }

  /**
   * Runs a function while nobody writes, after pending writes to these entries and below them were
   * stored.
   */
  async exclusively<T>(entries: readonly EntryName[], signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    const release = await this.#positions.acquireExclusive(signal);
    try {
      const concerned = [...this.#nodes].filter((node) => entries.some((entry) => isWithin(node, entry)));
      // The writer gets the failure at its next flush.
      await Promise.all(concerned.map((node) => this.settle(node).catch((error: Error) => lose(node, error))));
      return await run();
    } finally {
      release();
    }
  }

  /** Writes that wait for a peer get a short time to finish. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const timer = setTimeout(() => {
      for (const { tree } of this.#nodes) tree?.abortFetches();
    }, CLOSE_TIMEOUT_MS);
    await Promise.all([...this.#nodes].map((node) => this.#settleUnasked(node)));
    clearTimeout(timer);
  }

  #change({ node, tree }: WritableNode, content: AsyncIterable<Uint8Array>, change: NodeChange): Promise<void> {
    return node.unlinked
      ? this.#changeNameless(node, tree, content, change)
      : this.#write(tree, pathOf(node), content, change);
  }

  #write(
    { files, changing }: OwnTree,
    path: NamespacePath,
    content: AsyncIterable<Uint8Array>,
    { offset, truncate = false, create = false, signal }: NodeChange,
  ): Promise<void> {
    const { chunker, joinsLeaf } = this.#deps.imports;
    const usual = { count: undefined, parents: false, rawLeaves: undefined, settings: undefined, chunker, joinsLeaf };
    return writeFile(files, path, async () => content, { ...usual, ...changing, offset, truncate, create, signal });
  }

  /**
   * A file without a name exists while it is open, unless garbage collection removes its blocks.
   */
  async #changeNameless(
    node: NameNode,
    { files }: OwnTree,
    content: AsyncIterable<Uint8Array>,
    { offset, truncate = false, signal }: NodeChange,
  ): Promise<void> {
    // No path begins with this id.
    const release = await files.writers.acquire(`/${node.id}`, signal);
    try {
      await files.withGcGuard(signal, async (guard) => {
        const { chunker } = this.#deps.imports;
        const options = { offset, truncate, rawLeaves: undefined, chunker, signal };
        const edited = await editFile(
          files,
          node.file as UnixfsNode,
          async () => new ByteReader(content),
          options,
          guard,
        );
        if (edited === undefined) return;
        const { cid } = edited;
        node.file = unixfsNode(cid, await this.#deps.reader({})(cid)) ?? node.file;
      });
    } finally {
      release();
    }
  }

  async #refresh({ node, tree }: WritableNode): Promise<void> {
    node.version += 1;
    if (node.unlinked) return;
    const found = await tree.files.withTree({}, (root) => lookup(root, pathOf(node)));
    if (found instanceof Folder) node.facts = found.facts;
    else node.file = found.node;
    tree.changed();
  }

  #settleOld(): void {
    const now = performance.now();
    for (const node of this.#nodes) {
      const { writing } = node;
      if (writing === undefined || (now - writing.used < IDLE_MS && now - writing.began < MAX_WRITE_MS)) continue;
      void this.#settleUnasked(node);
    }
  }

  /** Never rejects. A failure is logged, and reported again by the next flush. */
  #settleUnasked(node: NameNode): Promise<void> {
    return this.settle(node).catch((error: Error) => {
      lose(node, error);
      this.#deps.log.write("fuse/ipns", "error", `${pathOf(node).text} was not written: ${error.message}`);
    });
  }
}

function isWithin(node: NameNode, { parent, name }: EntryName): boolean {
  for (let at: NameNode | undefined = node; at !== undefined; at = at.parent) {
    if (at.parent?.id === parent && at.name === name) return true;
  }
  return false;
}

/** Records a failure for the next flush. */
function lose(node: NameNode, error: Error): void {
  node.failure = error;
}

function targetOf(node: NameNode): WritableNode {
  if (node.tree === undefined) throw new FuseError("EPERM");
  return { node, tree: node.tree };
}
