/**
 * The filestore and the urlstore: blocks whose bytes stay in files of the user or behind URLs. All
 * other blocks are in the block store below.
 */
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { matches } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { compareNames } from "../../formats/dag_pb/dag_pb.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failure, failures } from "../../util/errors.ts";
import type { BufferPool } from "../blockstore/buffer_pool.ts";
import type { Block, BlockStore, ExternalLocation, PutOptions } from "../blockstore/store.ts";
import type { MetadataStore } from "../metadata/store.ts";
import type { Repo } from "../repo/repo.ts";
import { readBacking } from "./backing.ts";
import { CorruptReference, isUrl, type Reference, type Status, statuses } from "./reference.ts";
import { type ReferencedBlock, ReferenceStore } from "./reference_store.ts";

/** A block and the result of checking its reference. */
export interface Inspection {
  readonly cid: CID | undefined;
  readonly status: Status;
  /** Empty when the reference is valid. */
  readonly message: string;
  /** Undefined when the block has no reference. */
  readonly reference?: Reference;
}

export interface FilestoreSettings {
  /** References may only point to files below this folder. */
  readonly root: string;
  readonly files: boolean;
  readonly urls: boolean;
}

/** Maximum number of ranges that are read at the same time. */
const MAX_CONCURRENT = 8;

/**
 * Reads the settings from the configuration; undefined when neither kind of reference is enabled.
 */
export function filestoreSettings({ path, config }: Repo): FilestoreSettings | undefined {
  const files = config.value("Experimental.FilestoreEnabled");
  const urls = config.value("Experimental.UrlstoreEnabled");
  return files || urls ? { root: dirname(path), files, urls } : undefined;
}

export class Filestore implements BlockStore {
  /** The store of the blocks whose bytes are stored in the repo. */
  readonly main: BlockStore;
  readonly #references: ReferenceStore;
  readonly #settings: FilestoreSettings;

  constructor(main: BlockStore, metadata: MetadataStore, settings: FilestoreSettings) {
    this.main = main;
    this.#references = new ReferenceStore(metadata);
    this.#settings = settings;
  }

  /** Bytes behind references are checked in any case. */
  get verifies(): boolean {
    return this.main.verifies;
  }

  get joinsForms(): boolean {
    return this.main.joinsForms === true;
  }

  get takesUrls(): boolean {
    return this.#settings.urls;
  }

  /**
   * @throws CorruptReference when a file or URL no longer has the bytes that the reference names
   */
  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const bytes = await this.main.get(cid, buffers);
    if (bytes !== undefined) return bytes;
    const reference = await this.#references.get(cid);
    return reference && this.#read(cid, reference);
  }

  async has(cid: CID): Promise<boolean> {
    return (await this.main.has(cid)) || this.#references.has(cid);
  }

  async forms(cid: CID): Promise<readonly CID[]> {
    const forms = await this.main.forms(cid);
    const asRaw = makeCid(1, raw, cid.multihash);
    const referred = !forms.some((form) => form.equals(asRaw)) && (await this.#references.has(asRaw));
    return referred ? [...forms, asRaw] : forms;
  }

  pathOf(cid: CID): string | undefined {
    return this.main.pathOf?.(cid);
  }

  async size(cid: CID): Promise<number | undefined> {
    return (await this.main.size(cid)) ?? (await this.#references.get(cid))?.size;
  }

  /**
   * Stores blocks. A block with an external location is stored as a reference; a block that already
   * has a valid reference is not stored again. The bytes at the location are read and compared
   * first. An invalid reference is replaced.
   *
   * @throws NodeError with the text of go-ipfs when a location is not allowed or has other bytes
   */
  async put(blocks: readonly Block[], options?: PutOptions): Promise<void> {
    const stored: Block[] = [];
    const referred: ReferencedBlock[] = [];
    const sort = async (block: Block) => ({ block, reference: await this.#decide(block) });
    for await (const { block, reference } of mapConcurrent(blocks, MAX_CONCURRENT, sort)) {
      if (reference === "stored") stored.push(block);
      else if (reference !== "known") referred.push({ cid: block.cid, reference });
    }
    await this.#references.put(referred);
    if (options?.onNew !== undefined) for (const { cid } of referred) options.onNew(cid);
    if (stored.length > 0) await this.main.put(stored, options);
  }

  /**
   * Decides how a block is stored: as bytes, as a reference, or not at all because a valid
   * reference exists.
   */
  async #decide(block: Block): Promise<Reference | "stored" | "known"> {
    const { cid, at } = block;
    const known = await this.#references.get(cid);
    if (known === undefined && at === undefined) return "stored";
    // Storing a block again lets the main store compare its copy with these bytes and repair it.
    if (at !== undefined && (await this.main.has(cid))) return "stored";
    if (known !== undefined && (await this.#isValid(known, block))) return "known";
    if (at === undefined) return "stored";
    const reference = this.#referenceTo(at, block.bytes.length);
    await this.#compare(reference, block).catch((error: Error) => {
      throw failure("BLOCK_NOT_READ", { cid: String(cid), reason: error.message }, error);
    });
    return reference;
  }

  #isValid(reference: Reference, block: Block): Promise<boolean> {
    return this.#compare(reference, block).then(
      () => true,
      () => false,
    );
  }

  async #compare(reference: Reference, { bytes }: Block): Promise<void> {
    const found = await readBacking(this.#settings.root, reference);
    if (Buffer.compare(found, bytes) !== 0) throw changed(reference);
  }

  #referenceTo({ path, offset }: ExternalLocation, size: number): Reference {
    const { root, files, urls } = this.#settings;
    if (isUrl(path)) {
      if (!urls) throw failure("URLSTORE_OFF");
      return { path, offset, size };
    }
    if (!files) throw failure("FILESTORE_OFF");
    const below = relative(root, resolve(path));
    if (!isAbsolute(path) || isAbsolute(below) || below === ".." || below.startsWith(`..${sep}`)) {
      throw failure("REFERENCE_OUTSIDE", { root });
    }
    return { path: below.split(sep).join("/"), offset, size };
  }

  async #read(cid: CID, reference: Reference): Promise<Uint8Array> {
    const bytes = await readBacking(this.#settings.root, reference);
    if (!(await matches(cid, bytes))) throw changed(reference);
    return bytes;
  }

  sync(): Promise<void> {
    return this.main.sync();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    const stored = await this.main.delete(cids);
    const referred = await this.#references.delete(cids);
    return stored.map((was, at) => was || referred[at] === true);
  }

  async *keys(): AsyncGenerator<CID, void, undefined> {
    yield* this.main.keys();
    for await (const { cid } of this.#references.list()) if (!(await this.main.has(cid))) yield cid;
  }

  /**
   * Counts every reference, as go-ipfs does, even when the bytes of the block are stored as well.
   */
  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    const { blocks, bytes } = await this.main.stat();
    return { blocks: blocks + (await this.#references.count()), bytes };
  }

  compact(signal?: AbortSignal): Promise<void> {
    return this.main.compact(signal);
  }

  /** Checks stored bytes only; `verify` checks references. */
  check(cid: CID): Promise<boolean | undefined> {
    return this.main.check(cid);
  }

  close(): Promise<void> {
    return this.main.close();
  }

  // inspection

  /**
   * Yields all references in the order of their blocks. With `byFile`, sorts them by path and
   * offset, which needs all of them in memory.
   */
  async *list({ byFile = false } = {}): AsyncGenerator<ReferencedBlock, void, undefined> {
    if (!byFile) return yield* this.#references.list();
    const all: ReferencedBlock[] = [];
    for await (const block of this.#references.list()) all.push(block);
    yield* all.sort(
      ({ reference: one }, { reference: other }) => compareNames(one.path, other.path) || one.offset - other.offset,
    );
  }

  /** Checks every reference. */
  verify(options: { readonly byFile?: boolean } = {}): AsyncGenerator<Inspection, void, undefined> {
    return mapConcurrent(this.list(options), MAX_CONCURRENT, (block) => this.#inspect(block));
  }

  /**
   * Checks the reference of one block. A broken reference is part of the result and does not
   * reject.
   */
  async inspect(cid: CID): Promise<Inspection> {
    const reference = await this.#references.get(cid);
    if (reference !== undefined) return this.#inspect({ cid, reference });
    return { cid, status: statuses.keyNotFound, message: failures.BLOCKSTORE_NOT_FOUND };
  }

  async #inspect({ cid, reference }: ReferencedBlock): Promise<Inspection> {
    try {
      await this.#read(cid, reference);
      return { cid, reference, status: statuses.ok, message: "" };
    } catch (error) {
      const status = error instanceof CorruptReference ? error.status : statuses.otherError;
      return { cid, reference, status, message: (error as Error).message };
    }
  }

  /** Removes the reference of a block. Bytes of the block that are stored in the repo stay. */
  async forget(cid: CID): Promise<void> {
    await this.#references.delete([cid]);
  }

  /** Yields the blocks that have a reference and whose bytes are stored as well. */
  async *duplicates(): AsyncGenerator<CID, void, undefined> {
    for await (const { cid } of this.#references.list()) if (await this.main.has(cid)) yield cid;
  }
}

const changed = ({ path, offset }: Reference) =>
  new CorruptReference(statuses.fileChanged, `data in file did not match. ${path} offset ${offset}`);
