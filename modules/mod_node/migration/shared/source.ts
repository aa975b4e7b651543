/** The content to copy from a store that others may continue to use, as of one moment. */
import type { CID } from "multiformats/cid";
import { Journal } from "../../content/mfs/journal.ts";
import { Namespace } from "../../content/mfs/namespace.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { BlockService } from "../../storage/blockstore/block_service.ts";
import type { Block, BlockStore, PutOptions } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { NodeLog } from "../../util/log.ts";
import { memoryStores } from "../open_stores/engines.ts";

export interface Source {
  /** Blocks to read, including directories of the files that were not stored as blocks yet. */
  readonly blocks: BlockStore;
  /** A copy of the metadata, as of that moment. */
  readonly metadata: MetadataStore;
  /** Root of the files with all changes; undefined if there are none. */
  readonly root: CID | undefined;
}

/** Root of the files in a new repo. */
export const emptyDirectory = parseCid("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");

/**
 * `metadata` is a copy, and `blocks` contains everything that it refers to. Neither is written to.
 */
export async function sourceOf(
  blocks: BlockStore,
  metadata: MetadataStore,
  sharded: () => boolean = () => false,
): Promise<Source> {
  const made = memoryStores();
  // Contains at most as many changes as a journal has.
  const files = await Array.fromAsync(metadata.range({ prefix: "files/" }));
  if (files.length === 0) return { blocks, metadata, root: undefined };
  await made.metadata.transaction((writer) => {
    for (const [key, value] of files) writer.put(key, value);
  });
  const both = new WithMore(blocks, made.blocks);
  const parts = { blocks: new BlockService(both), metadata: made.metadata, lock: new SharedLock(), sharded };
  await new Namespace({ ...parts, log: new NodeLog() }).roots();
  const root = await new Journal(made.metadata).root();
  return { blocks: both, metadata, root: root?.equals(emptyDirectory) ? undefined : root };
}

/** Adds a few blocks in memory to a block store that is only read. */
class WithMore implements BlockStore {
  readonly #main: BlockStore;
  readonly #more: BlockStore;

  constructor(main: BlockStore, more: BlockStore) {
    this.#main = main;
    this.#more = more;
  }

  get verifies(): boolean {
    return this.#main.verifies;
  }

  async get(cid: CID): Promise<Uint8Array | undefined> {
    return (await this.#more.get(cid)) ?? this.#main.get(cid);
  }

  async has(cid: CID): Promise<boolean> {
    return (await this.#more.has(cid)) || this.#main.has(cid);
  }

  async forms(cid: CID): Promise<readonly CID[]> {
    const forms = [...(await this.#more.forms(cid)), ...(await this.#main.forms(cid))];
    return [...new Map(forms.map((form) => [form.toString(), form])).values()];
  }

  async size(cid: CID): Promise<number | undefined> {
    return (await this.#more.size(cid)) ?? this.#main.size(cid);
  }

  async put(blocks: readonly Block[], options?: PutOptions): Promise<void> {
    for (const block of blocks) if (!(await this.#main.has(block.cid))) await this.#more.put([block], options);
  }

  async sync(): Promise<void> {}

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    return this.#more.delete(cids);
  }

  async *keys(): AsyncGenerator<CID> {
    yield* this.#more.keys();
    yield* this.#main.keys();
  }

  async *keysToRead(): AsyncGenerator<CID> {
    yield* this.#more.keys();
    yield* this.#main.keysToRead?.() ?? this.#main.keys();
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    const one = await this.#main.stat();
    const other = await this.#more.stat();
    return { blocks: one.blocks + other.blocks, bytes: one.bytes + other.bytes };
  }

  async compact(): Promise<void> {}

  check(cid: CID): Promise<boolean | undefined> {
    return this.#main.check(cid);
  }

  /** The caller closes the underlying stores. */
  async close(): Promise<void> {}
}
