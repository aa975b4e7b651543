/** Opens the engines of stores by their paths. */
import { dirname, join } from "node:path";
import type { CID } from "multiformats/cid";
import { openFlatfs } from "../../storage/blockstore/flatfs/store.ts";
import { memoryBlocks } from "../../storage/blockstore/memory.ts";
import { openSegmentStore } from "../../storage/blockstore/segments/store.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { MakeRoom } from "../../storage/disk_reserve.ts";
import type { KeyHolder } from "../../storage/keystore/key_holder.ts";
import { CopiedMetadata } from "../../storage/metadata/copied.ts";
import { openLmdbMetadata } from "../../storage/metadata/lmdb.ts";
import { memoryMetadata } from "../../storage/metadata/memory.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { ForeignDatabase, StorePaths } from "../../storage/repo/datastore.ts";
import type { Collections } from "../../storage/shared/gc/collections.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import type { SharedStoreMetrics } from "../../storage/shared/metrics.ts";
import type { BlockImportOptions } from "../from_go_ipfs/import_blocks.ts";

export interface Stores {
  readonly blocks: BlockStore;
  /**
   * Metadata that belongs to the blocks: pins, files, trees of mounts, published names, roots to
   * provide, and data of modules.
   */
  readonly metadata: MetadataStore;
  /**
   * Metadata of this host alone: peers, DHT records, and the time of the last provide run. By
   * default, `metadata` contains it.
   */
  readonly hostMetadata?: MetadataStore | undefined;
  /**
   * The log through which hosts share these blocks and this metadata; undefined for stores of this
   * host alone.
   */
  readonly shared?: SharedLog | undefined;
  /**
   * Calls the listener with each key of `metadata` that any host has changed; only for shared
   * stores.
   */
  readonly onMetadata?: ((listener: (key: string) => void) => void) | undefined;
  /** Garbage collection together with the other hosts; only for shared stores. */
  readonly collections?: Collections | undefined;
  /**
   * Returns why calls currently fail, in a sentence; undefined while the stores work. Only for
   * shared stores.
   */
  readonly problem?: (() => string | undefined) | undefined;
  /** Metrics of the requests to a shared store. */
  readonly metrics?: (() => SharedStoreMetrics) | undefined;
  /** Called after the stores are closed, to close what they have in common. Never rejects. */
  readonly close?: () => Promise<void>;
  /** Keys for names that hosts share; if undefined, the keys are files of the repo. */
  readonly keys?: KeyHolder | undefined;
  /** Brings the copy of the metadata up to date, if there is one; never rejects. */
  readonly copyMetadata?: () => Promise<void>;
}

/** Creates stores in memory for `NodeOptions.stores`: for tests, and for nodes that only fetch. */
export const memoryStores = (): Stores => ({ blocks: memoryBlocks(), metadata: memoryMetadata() });

/** Called with a sentence for the operator. */
export type Notice = (sentence: string) => void;

/**
 * Opens a block store. It verifies every block that it reads, so it never returns a damaged one.
 * @throws NodeError STORE_FULL, STORE_BROKEN
 */
export function openBlocks(
  { kind, blocks, shardFunc, namedAfter }: StorePaths,
  onNotice: Notice,
  makeRoom?: MakeRoom,
): Promise<BlockStore> {
  if (kind === "flatfs") return openFlatfs(blocks, { shardFunc, namedAfter, verifyOnRead: true });
  return openSegmentStore(blocks, { verifyOnRead: true, onNotice, makeRoom });
}

/**
 * Opens a metadata store.
 * @throws NodeError STORE_BROKEN
 */
export const openMetadata = (
  { metadata }: Pick<StorePaths, "metadata">,
  onNotice: Notice,
  makeRoom?: MakeRoom,
): Promise<MetadataStore> => openLmdbMetadata(metadata, onNotice, makeRoom);

/** Path of the copy of the metadata, next to the metadata folder. */
export const metadataCopy = ({ metadata }: StorePaths): string => `${metadata}.copy`;

/** Path of the folder for damaged blocks, next to the blocks. */
export { lostAndFound } from "../../storage/blockstore/segments/lost_and_found.ts";

/**
 * Path of metadata from a backup, which replaces the metadata when the stores are opened. It is
 * next to the metadata folder, too.
 */
export const metadataToRestore = ({ metadata }: Pick<StorePaths, "metadata">): string => `${metadata}.restore`;

/** Opens a metadata store and maintains a copy of it. */
export async function openCopiedMetadata(
  paths: StorePaths,
  onNotice: Notice,
  makeRoom?: MakeRoom,
): Promise<CopiedMetadata> {
  const metadata = await openMetadata(paths, onNotice, makeRoom);
  try {
    return await CopiedMetadata.open(metadata, { path: metadataCopy(paths), onNotice });
  } catch (error) {
    await metadata.close().catch(() => undefined);
    throw error;
  }
}

export interface ForeignImport extends BlockImportOptions {
  readonly from: ForeignDatabase;
  /** Folder of the metadata of `to`. */
  readonly metadataFolder: string;
  readonly to: Stores;
  readonly onNotice: Notice;
}

/**
 * Imports the changes that go-ipfs or Kubo has made to the metadata, and the blocks if they are in
 * the same database.
 * @throws NodeError DATABASE_IN_USE, DATABASE_DAMAGED, BLOCK_CORRUPT; the signal's reason when it
 * aborts
 */
export async function importForeign({ from, metadataFolder, to, onNotice, ...options }: ForeignImport): Promise<void> {
  // Loaded on demand, because most repos have no such database.
  const { importMetadata } = await import("../from_go_ipfs/import_metadata.ts");
  const { importBlocks, storeForms } = await import("../from_go_ipfs/import_blocks.ts");
  const find = async (cid: CID) => (await to.blocks.get(cid)) ?? firstOf(to.blocks, await to.blocks.forms(cid));
  await importMetadata({
    from,
    metadata: to.metadata,
    find,
    onChanged: from.hasBlocks === true ? (database) => importBlocks(database, to.blocks, options) : undefined,
    onImported: from.hasBlocks === true ? () => storeForms(to, options.signal) : undefined,
    scratch: join(dirname(metadataFolder), "reading"),
    onNotice,
    signal: options.signal,
  });
}

/**
 * Returns the first CID under which the store has the block: blocks of a database are stored under
 * other CIDs than those that refer to them.
 */
const firstOf = (blocks: BlockStore, [form]: readonly CID[]) => (form === undefined ? undefined : blocks.get(form));
