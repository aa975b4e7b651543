/** A namespace in memory, with short methods for its operations. */
import type { CID } from "multiformats/cid";
import { type CidOptions, cidSettings } from "#node/content/mfs/cid_settings.ts";
import { entriesIn, statOf } from "#node/content/mfs/list.ts";
import { Namespace } from "#node/content/mfs/namespace.ts";
import * as operations from "#node/content/mfs/operations.ts";
import { nameOf, namespacePath } from "#node/content/mfs/path.ts";
import { fileAt, type WriteFileOptions, writeFile } from "#node/content/mfs/write_file.ts";
import { type UnixfsNode, unixfsNode } from "#node/content/unixfs/node.ts";
import { readFile } from "#node/content/unixfs/read.ts";
import type { ModeAndTime } from "#node/formats/unixfs/format.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import type { MetadataStore } from "#node/storage/metadata/store.ts";
import { readUpTo } from "#node/util/async/read_all.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { NodeLog } from "#node/util/log.ts";

export async function* pieces(bytes: Uint8Array, size = 50_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export class TestNamespace {
  readonly store: BlockStore;
  readonly metadata: MetadataStore;
  readonly lock = new SharedLock();
  readonly blocks: BlockService;
  readonly log = new NodeLog();
  sharded = false;
  files: Namespace;

  /** Whether other namespaces use the same metadata. */
  readonly shared: boolean;

  constructor(store: BlockStore = memoryBlocks(), metadata = memoryMetadata(), shared = false) {
    this.shared = shared;
    this.store = store;
    this.metadata = metadata;
    this.blocks = new BlockService(store);
    this.files = this.#open();
  }

  /** Simulates a crash: everything that is not durable is lost. */
  crash(): void {
    this.files = this.#open();
  }

  #open(): Namespace {
    const { blocks, metadata, lock, log, shared } = this;
    const files = new Namespace({ blocks, metadata, lock, log, shared, sharded: () => this.sharded });
    blocks.pending = files;
    return files;
  }

  write(
    path: string,
    content: string | Uint8Array | AsyncIterable<Uint8Array>,
    options: Partial<WriteFileOptions> = {},
  ): Promise<void> {
    const defaults = {
      flush: true,
      offset: 0,
      count: undefined,
      create: true,
      parents: false,
      truncate: false,
      rawLeaves: undefined,
      settings: undefined,
    };
    const body = async () =>
      typeof content === "string" || content instanceof Uint8Array ? pieces(Buffer.from(content)) : content;
    return writeFile(this.files, namespacePath(path), body, { ...defaults, ...options });
  }

  async mkdir(
    path: string,
    { parents = false, flush = true, ...cid }: { parents?: boolean; flush?: boolean } & CidOptions = {},
  ) {
    return operations.makeDirectory(this.files, namespacePath(path), { parents, flush, settings: cidSettings(cid) });
  }

  cp(source: string | CID, dest: string, flush = true): Promise<void> {
    if (typeof source !== "string") {
      const text = `/ipfs/${source}`;
      return operations.copy(this.files, { text, name: source.toString(), at: source }, namespacePath(dest), { flush });
    }
    const at = namespacePath(source);
    return operations.copy(this.files, { text: source, name: nameOf(at), at }, namespacePath(dest), { flush });
  }

  mv(source: string, dest: string, flush = true): Promise<void> {
    return operations.move(this.files, namespacePath(source), namespacePath(dest), { flush });
  }

  rm(
    path: string,
    { recursive = false, force = false, flush = true, ...sharding }: Partial<operations.RemoveOptions> = {},
  ): Promise<void> {
    return operations.remove(this.files, namespacePath(path), { recursive, force, flush, ...sharding });
  }

  chcid(path: string, options: CidOptions): Promise<void> {
    return operations.changeCid(this.files, namespacePath(path), cidSettings(options), { flush: true });
  }

  /** Undefined removes a mode or time. */
  facts(path: string, facts: ModeAndTime): Promise<void> {
    return operations.changeFacts(this.files, namespacePath(path), (before) => ({ ...before, ...facts }), {
      flush: true,
    });
  }

  cid(path = "/"): Promise<CID> {
    return operations.cidAt(this.files, namespacePath(path), {});
  }

  async read(path: string): Promise<string> {
    return (await this.bytes(path)).toString();
  }

  async bytes(path: string): Promise<Buffer> {
    const { node } = await fileAt(this.files, namespacePath(path), {});
    return Buffer.from(await readUpTo(readFile(node, this.files.reader({}))));
  }

  async stat(path: string) {
    const cid = await this.cid(path);
    return statOf(cid, await this.files.reader({})(cid));
  }

  /** Returns the content of a file, or the names in a directory, at one moment. */
  async look(path: string): Promise<{ readonly content: string } | { readonly names: readonly string[] }> {
    const cid = await this.cid(path);
    const read = this.files.reader({});
    const bytes = await read(cid);
    if (statOf(cid, bytes).kind === "directory") {
      return { names: (await Array.fromAsync(entriesIn(cid, bytes, read))).map(({ name }) => name) };
    }
    const node = unixfsNode(cid, bytes) as UnixfsNode;
    return { content: Buffer.from(await readUpTo(readFile(node, read))).toString() };
  }

  /** Returns the names in the directory's order, those of directories with a slash. */
  async ls(path = "/"): Promise<string[]> {
    const cid = await this.cid(path);
    const read = this.files.reader({});
    const found = await Array.fromAsync(entriesIn(cid, await read(cid), read));
    return found.map(({ name, kind }) => (kind === "directory" ? `${name}/` : name));
  }
}
