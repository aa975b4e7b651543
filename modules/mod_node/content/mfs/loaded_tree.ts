/** The loaded part of the MFS tree. The root is loaded when the first call needs it. */
import type { CID } from "multiformats/cid";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import type { NodeLog } from "../../util/log.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { type CidSettings, defaultCid } from "../unixfs/build.ts";
import { buildDirectory } from "../unixfs/directory.ts";
import type { Folder, FolderDeps, NamespaceSharding } from "./folder.ts";
import type { Journal, NamespaceChange } from "./journal.ts";
import { loadTree } from "./load.ts";
import type { Trace } from "./trace.ts";
import type { UnstoredBlocks } from "./unstored.ts";

/**
 * Bytes of directories that are read before the directories without changes are dropped from
 * memory.
 */
const MAX_READ_BYTES = 64 * 1024 * 1024;

export interface LoadedTreeDeps {
  readonly blocks: BlockService;
  readonly unstored: UnstoredBlocks;
  readonly journal: Journal;
  /** Whether directories become sharded, for calls without an option of their own. */
  readonly sharded: () => boolean;
  /** The form of the root. By default its form does not change. */
  readonly rootForm?: (() => CidSettings | undefined) | undefined;
  readonly log: NodeLog;
}

/** Thrown to end an attempt that needs a block which is not on this machine. */
class MissingBlock extends Error {
  readonly cid: CID;

  constructor(cid: CID) {
    super(`${cid} is not on this machine`);
    this.cid = cid;
  }
}

/** The result of a call, or the missing block that ended it. */
export type Attempt<T> = { readonly result: T } | { readonly missing: CID };

/** Records the changes of a call. A `Trace` also records what the call reads. */
export type Recorder = { readonly changes: NamespaceChange[] } & Partial<Trace>;

/** A call on the tree. */
export interface TreeCall<T> {
  readonly run: (root: Folder) => Promise<T>;
  /** Blocks that were fetched because they are not on this machine, by the text of their CIDs. */
  readonly fetched: ReadonlyMap<string, Uint8Array>;
  /** When directories become sharded; by default as the dependencies say. */
  readonly sharding?: NamespaceSharding | undefined;
}

export class LoadedTree {
  readonly #deps: LoadedTreeDeps;
  #root: Folder | undefined;
  /** Bytes of directories that were read since the tree was pruned. */
  #readBytes = 0;
  /** Blocks that were fetched for the current attempt, by the text of their CIDs. */
  #fetched: ReadonlyMap<string, Uint8Array> = new Map();
  /** The option of the current attempt. */
  #sharding: NamespaceSharding | undefined;
  /**
   * The recorder of the current attempt. Undefined while the tree is loaded or applies changes of
   * the journal.
   */
  #recorder: Recorder | undefined;

  constructor(deps: LoadedTreeDeps) {
    this.#deps = deps;
  }

  /** Undefined while the tree is not loaded. */
  get root(): Folder | undefined {
    return this.#root;
  }

  /**
   * Whether so much was read that the tree should be stored and its directories dropped from
   * memory.
   */
  get isLarge(): boolean {
    return this.#readBytes > MAX_READ_BYTES;
  }

  /** Drops the tree. The next call loads it again. */
  drop(): void {
    this.#root = undefined;
  }

  /** Runs a call on the tree. The caller makes sure that no other call runs. */
  async attempt<T>({ run, fetched, sharding }: TreeCall<T>, recorder: Recorder): Promise<Attempt<T>> {
    this.#fetched = fetched;
    try {
      const root = await this.#loaded();
      this.#recorder = recorder;
      this.#sharding = sharding;
      return { result: await run(root) };
    } catch (error) {
      if (error instanceof MissingBlock) return { missing: error.cid };
      throw error;
    } finally {
      this.#recorder = undefined;
      this.#sharding = undefined;
    }
  }

  /** Reads a block of this machine. A missing block ends the attempt. */
  readonly readLocal: ReadBlock = async (cid) => {
    const { blocks, unstored } = this.#deps;
    const here = (await blocks.findStored(cid)) ?? unstored.get(cid);
    const bytes = here ?? this.#fetched.get(cid.toString());
    if (bytes === undefined) throw new MissingBlock(cid);
    this.#readBytes += bytes.length;
    return bytes;
  };

  async emptyDirectory(): Promise<CID> {
    const put = (block: Block) => this.#deps.unstored.put([block]);
    return (await buildDirectory([], { ...defaultCid, sharded: false }, put)).cid;
  }

  async #loaded(): Promise<Folder> {
    const root = this.#root ?? (await this.#load());
    this.#root = root;
    if (this.isLarge) {
      root.prune();
      this.#readBytes = 0;
    }
    return root;
  }

  /** Loads the stored root, with the changes of the journal. */
  async #load(): Promise<Folder> {
    const { journal, sharded, rootForm, log } = this.#deps;
    const deps: FolderDeps = {
      read: this.readLocal,
      sharding: () => this.#sharding ?? { sharded: sharded() },
      changed: (change) => this.#recorder?.changes.push(change),
      looked: (folder, name) => this.#recorder?.looked?.(folder.path, name),
      stored: (folder) => this.#recorder?.stored?.(folder.path),
    };
    const state = await journal.load();
    const root = await loadTree(state.root ?? (await this.emptyDirectory()), state, deps, log);
    const form = rootForm?.();
    if (form !== undefined) root.assumeSettings(form);
    return root;
  }
}
