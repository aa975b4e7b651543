/** The loaded part of the MFS tree: directories that were visited, and their changes. */
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { type PbLink, pbData } from "../../formats/dag_pb/dag_pb.ts";
import { decodeUnixfs, type ModeAndTime, type Unixfs } from "../../formats/unixfs/format.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import type { BlockSink, Built, CidSettings } from "../unixfs/build.ts";
import { duplicateEntry } from "../unixfs/directory.ts";
import { type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { SHARD_WIDTH } from "../unixfs/shard.ts";
import type { Sharding } from "../unixfs/sharding.ts";
import { settingsOf } from "./cid_settings.ts";
import type { Directory, OnStored } from "./directory.ts";
import type { NamespaceChange } from "./journal.ts";
import { PlainDirectory } from "./plain_directory.ts";
import { ShardedDirectory } from "./sharded_directory.ts";

/** The dependencies of a directory and of those below it. */
export interface FolderDeps {
  /** Reads blocks of this machine. */
  readonly read: ReadBlock;
  /** When a directory becomes sharded by the current change. */
  readonly sharding: () => NamespaceSharding;
  /** Called with every change. */
  readonly changed: (change: NamespaceChange) => void;
  /** Called with every entry that is looked up, if several hosts change the tree. */
  readonly looked?: ((folder: Folder, name: string) => void) | undefined;
  /** Called when a directory and everything below it is stored. */
  readonly stored?: ((folder: Folder) => void) | undefined;
}

/** When directories become sharded, and into how many slots. */
export interface NamespaceSharding {
  readonly sharded: Sharding;
  readonly fanout?: number | undefined;
}

export interface FileEntry {
  readonly link: PbLink;
  readonly node: UnixfsNode;
}

export const missing = (): NodeError => failure("FILE_NOT_FOUND");
export const isMissing = (error: unknown): boolean => error instanceof NodeError && error.code === "FILE_NOT_FOUND";

/**
 * Returns the kind of entry that a block makes. @throws NodeError for a block that cannot be an
 * entry of MFS
 */
export function kindOf(cid: CID, bytes: Uint8Array): "directory" | "file" {
  return cid.code === raw ? "file" : kindIn(entryIn(cid, bytes));
}

/** Decodes a block that is not raw. @throws as `kindOf` */
export function entryIn(cid: CID, bytes: Uint8Array): Unixfs {
  if (cid.code !== dagPb) throw failure("NOT_UNIXFS", { reason: "unrecognized node type in cache node" });
  const unixfs = decodeUnixfs(pbData(bytes) ?? new Uint8Array());
  if (unixfs.type === "Metadata") throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "not yet implemented" });
  return unixfs;
}

export const kindIn = ({ type }: Unixfs): "directory" | "file" =>
  type === "Directory" || type === "HAMTShard" ? "directory" : "file";

export class Folder {
  readonly name: string;
  readonly parent: Folder | undefined;
  readonly #deps: FolderDeps;
  readonly #loaded = new Map<string, Folder>();
  /** Names of the loaded directories with changes. */
  readonly #dirty = new Set<string>();
  #directory: Directory;
  #settings: CidSettings;
  /** Undefined if something in it or below it has changed since it was stored. */
  #built: Built | undefined;

  /**
   * @param link its entry in the parent
   *
   * @throws NodeError when the block is not a directory
   */
  constructor(link: PbLink, bytes: Uint8Array, deps: FolderDeps, parent?: Folder) {
    const { name, cid, size } = link;
    if (kindOf(cid, bytes) !== "directory") throw failure("NOT_A_DIRECTORY", { path: String(cid) });
    this.name = name;
    this.parent = parent;
    this.#deps = deps;
    this.#settings = settingsOf(cid);
    this.#built = { cid, size };
    const { type } = decodeUnixfs(pbData(bytes) ?? new Uint8Array());
    this.#directory =
      type === "HAMTShard"
        ? ShardedDirectory.open(unixfsNode(cid, bytes) as UnixfsNode, deps.read)
        : new PlainDirectory(bytes);
  }

  /** Names from the root. */
  get path(): string[] {
    const names: string[] = [];
    for (let folder: Folder = this; folder.parent !== undefined; folder = folder.parent) names.push(folder.name);
    return names.reverse();
  }

  get settings(): CidSettings {
    return this.#settings;
  }

  /** Whether nothing in it or below it has changed since it was stored. */
  get isStored(): boolean {
    return this.#built !== undefined;
  }

  /** Returns the link of an entry, as it was when the entry was last stored. */
  find(name: string): Promise<PbLink | undefined> {
    this.#deps.looked?.(this, name);
    return this.#directory.find(name);
  }

  /** @throws NodeError for an entry that does not exist, or cannot be an entry of MFS */
  async child(name: string): Promise<Folder | FileEntry> {
    const loaded = this.#loaded.get(name);
    if (loaded !== undefined) {
      this.#deps.looked?.(this, name);
      return loaded;
    }
    const link = await this.find(name);
    if (link === undefined) throw missing();
    const bytes = await this.#deps.read(link.cid);
    if (kindOf(link.cid, bytes) === "file") return { link, node: unixfsNode(link.cid, bytes) as UnixfsNode };
    const folder = new Folder(link, bytes, this.#deps, this);
    this.#loaded.set(name, folder);
    return folder;
  }

  /** Like `child`; undefined if there is no entry. */
  async findChild(name: string): Promise<Folder | FileEntry | undefined> {
    return (await this.find(name)) && this.child(name);
  }

  /** Adds an entry. @throws NodeError when an entry of that name exists */
  async add(link: PbLink): Promise<void> {
    if ((await this.find(link.name)) !== undefined) throw duplicateEntry();
    await this.put(link);
  }

  /** Replaces the block of an entry that is a file. */
  async replace(link: PbLink): Promise<void> {
    if ((await this.find(link.name)) === undefined) throw missing();
    await this.put(link);
  }

  /** Adds an entry, or replaces the one of the same name. */
  async put(link: PbLink): Promise<void> {
    await this.find(link.name);
    this.#forget(link.name);
    this.#set(link);
    this.#change({ at: this.path, put: link });
    const { sharded, fanout } = this.#deps.sharding();
    if (typeof sharded === "boolean" || !(this.#directory instanceof PlainDirectory)) return;
    if (!this.#directory.exceeds(sharded)) return;
    this.#shard(fanout);
    this.#change({ at: this.path, fanout: fanout ?? SHARD_WIDTH });
  }

  /** @throws NodeError when there is no such entry */
  async remove(name: string): Promise<void> {
    const isPlainNext = await this.readyToRemove(name);
    this.#forget(name);
    this.#directory.remove(name);
    this.#change({ at: this.path, remove: name });
    if (isPlainNext) await this.changeForm(0);
  }

  /**
   * Reads the blocks that `remove` needs. Returns whether the directory becomes plain without that
   * entry.
   *
   * @throws NodeError when there is no such entry
   */
  async readyToRemove(name: string): Promise<boolean> {
    const link = await this.find(name);
    if (link === undefined) throw missing();
    const { sharded } = this.#deps.sharding();
    if (typeof sharded === "boolean" || !(this.#directory instanceof ShardedDirectory)) return false;
    return !(await this.#directory.exceedsWithout(link, sharded));
  }

  /** Makes it a sharded directory with that many slots, or a plain one with 0. */
  async changeForm(fanout: number): Promise<void> {
    if (fanout > 0) this.#shard(fanout);
    else if (this.#directory instanceof ShardedDirectory) {
      const { facts } = this.#directory;
      this.#directory = PlainDirectory.from(await this.#directory.all(), facts);
    }
    this.#change({ at: this.path, fanout });
  }

  changeSettings(settings: CidSettings): void {
    this.#settings = settings;
    this.#change({ at: this.path, settings });
  }

  /**
   * Like `changeSettings`, but without a change in the journal: for a root whose settings come from
   * the configuration at each start.
   */
  assumeSettings(settings: CidSettings): void {
    const { version, hash } = this.#settings;
    if (version === settings.version && hash.code === settings.hash.code) return;
    this.#settings = settings;
    this.#markDirty();
  }

  /** Mode and time of the directory itself. */
  get facts(): ModeAndTime {
    // No entry has this name: it stands for the directory itself. So calls that read its facts
    // depend on calls that change them.
    this.#deps.looked?.(this, "");
    return this.#directory.facts;
  }

  changeFacts(facts: ModeAndTime): void {
    this.#directory.facts = facts;
    this.#change({ at: this.path, facts });
  }

  /**
   * Passes the changed blocks in it and below it to the sink. Iterative, because trees may be
   * arbitrarily deep.
   */
  async write(sink: BlockSink, settled: OnStored[]): Promise<Built> {
    this.#deps.stored?.(this);
    const changed: Folder[] = [this];
    for (const folder of changed) {
      for (const name of folder.#dirty) changed.push(folder.#loaded.get(name) as Folder);
    }
    const made = new Map<Folder, Built>();
    for (const folder of changed.reverse()) made.set(folder, await folder.#writeSelf(made, sink, settled));
    return made.get(this) as Built;
  }

  /** @param made the changed directories below it */
  async #writeSelf(made: ReadonlyMap<Folder, Built>, sink: BlockSink, settled: OnStored[]): Promise<Built> {
    if (this.#built !== undefined) return this.#built;
    for (const name of this.#dirty) {
      const { cid, size } = made.get(this.#loaded.get(name) as Folder) as Built;
      await this.find(name);
      this.#set({ name, cid, size });
    }
    const built = await this.#directory.write(this.#settings, sink, settled);
    settled.push(() => {
      this.#built = built;
      this.#dirty.clear();
    });
    return built;
  }

  /** Drops all loaded directories without changes. */
  prune(): void {
    const dirtyFolders: Folder[] = [this];
    for (const folder of dirtyFolders) {
      for (const [name, below] of folder.#loaded) {
        if (folder.#dirty.has(name)) dirtyFolders.push(below);
        else folder.#loaded.delete(name);
      }
    }
  }

  #set(link: PbLink): void {
    const { sharded, fanout } = this.#deps.sharding();
    if (sharded === true) this.#shard(fanout);
    this.#directory.set(link);
  }

  #shard(fanout: number | undefined): void {
    if (!(this.#directory instanceof PlainDirectory)) return;
    const { facts } = this.#directory;
    const settings = { ...this.#settings, fanout };
    this.#directory = ShardedDirectory.from(this.#directory.links(), settings, this.#deps.read, facts);
  }

  #forget(name: string): void {
    this.#loaded.delete(name);
    this.#dirty.delete(name);
  }

  #change(change: NamespaceChange): void {
    this.#deps.changed(change);
    this.#markDirty();
  }

  /** Marks this directory and all above it as changed since they were stored. */
  #markDirty(): void {
    for (
      let folder: Folder | undefined = this;
      folder !== undefined && folder.#built !== undefined;
      folder = folder.parent
    ) {
      folder.#built = undefined;
      if (folder.parent !== undefined) folder.parent.#dirty.add(folder.name);
    }
  }
}
