/** The part of the MFS tree that is in memory: directories that were visited, and their changes. */
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
import type { Change } from "./journal.ts";
import { PlainDirectory } from "./plain_directory.ts";
import { ShardedDirectory } from "./sharded_directory.ts";

/** What directories are loaded with. */
export interface FolderDeps {
  /** Reads blocks of this machine. */
  readonly read: ReadBlock;
  /** When a directory becomes sharded, for what is changed now. */
  readonly sharding: () => NamespaceSharding;
  /** Called with every change. */
  readonly changed: (change: Change) => void;
  /** Called with every entry that is looked up; for trees that several hosts change. */
  readonly looked?: ((folder: Folder, name: string) => void) | undefined;
  /** Called when a directory and everything below is stored. */
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

/** The kind of entry that a block makes. @throws NodeError for a block that MFS cannot hold */
export function kindOf(cid: CID, bytes: Uint8Array): "directory" | "file" {
  return cid.code === raw ? "file" : kindIn(entryIn(cid, bytes));
}

/** What a block that is not raw says. @throws as `kindOf` */
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
  /** Names of the loaded directories that have changes. */
  readonly #dirty = new Set<string>();
  #directory: Directory;
  #settings: CidSettings;
  /** Undefined when something in it or below has changed since it was stored. */
  #built: Built | undefined;

  /** `link` is its entry in the parent. @throws NodeError when the block is not a directory */
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

  /** Nothing in it or below has changed since it was stored. */
  get isStored(): boolean {
    return this.#built !== undefined;
  }

  /** The link of an entry, as it was when the entry was last stored. */
  find(name: string): Promise<PbLink | undefined> {
    this.#deps.looked?.(this, name);
    return this.#directory.find(name);
  }

  /** @throws NodeError when there is no such entry, or one that MFS cannot hold */
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

  /** Like `child`; undefined when there is none. */
  async findChild(name: string): Promise<Folder | FileEntry | undefined> {
    return (await this.find(name)) && this.child(name);
  }

  /** Adds an entry. @throws NodeError when one of that name exists */
  async add(link: PbLink): Promise<void> {
    if ((await this.find(link.name)) !== undefined) throw duplicateEntry();
    await this.put(link);
  }

  /** Replaces the block of an entry that is a file. */
  async replace(link: PbLink): Promise<void> {
    if ((await this.find(link.name)) === undefined) throw missing();
    await this.put(link);
  }

  /** Puts an entry, replacing whatever has its name. */
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

  /** @throws NodeError when there is none */
  async remove(name: string): Promise<void> {
    const isPlainNext = await this.readyToRemove(name);
    this.#forget(name);
    this.#directory.remove(name);
    this.#change({ at: this.path, remove: name });
    if (isPlainNext) await this.changeForm(0);
  }

  /**
   * Reads what `remove` needs, so that it reads nothing; true when the directory is plain without
   * that entry.
   *
   * @throws NodeError when there is none
   */
  async readyToRemove(name: string): Promise<boolean> {
    const link = await this.find(name);
    if (link === undefined) throw missing();
    const { sharded } = this.#deps.sharding();
    if (typeof sharded === "boolean" || !(this.#directory instanceof ShardedDirectory)) return false;
    return !(await this.#directory.exceedsWithout(link, sharded));
  }

  /** Makes it a sharded directory of so many slots, or with 0 a plain one. */
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
   * As `changeSettings`, for a root whose settings the configuration says at each start: that is no
   * change for the journal.
   */
  assumeSettings(settings: CidSettings): void {
    const { version, hash } = this.#settings;
    if (version === settings.version && hash.code === settings.hash.code) return;
    this.#settings = settings;
    this.#markDirty();
  }

  /** Of the directory itself. */
  get facts(): ModeAndTime {
    // No entry has this name: whoever changes the directory itself is in the way of who looks at
    // it.
    this.#deps.looked?.(this, "");
    return this.#directory.facts;
  }

  changeFacts(facts: ModeAndTime): void {
    this.#directory.facts = facts;
    this.#change({ at: this.path, facts });
  }

  /**
   * Hands the changed blocks in it and below to the sink. Iterative, since trees may be arbitrarily
   * deep.
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

  /** `made` has the changed directories below it. */
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
    const kept: Folder[] = [this];
    for (const folder of kept) {
      for (const [name, below] of folder.#loaded) {
        if (folder.#dirty.has(name)) kept.push(below);
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

  #change(change: Change): void {
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
