/** Opens the engines of stores, by where they are. */
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
   * What goes with the blocks: pins, files, trees of mounts, published names, what is to be
   * provided, the data of modules.
   */
  readonly metadata: MetadataStore;
  /**
   * What concerns this host alone: peers, records of the DHT, when it provided last. By default
   * `metadata`.
   */
  readonly hostMetadata?: MetadataStore | undefined;
  /**
   * The log that other hosts work on these blocks and this metadata with; undefined for stores of
   * this host alone.
   */
  readonly shared?: SharedLog | undefined;
  /** The listener hears of each key of `metadata` that any host has changed; with `shared`. */
  readonly onMetadata?: ((listener: (key: string) => void) => void) | undefined;
  /** Removes garbage together with those hosts; with `shared`. */
  readonly collections?: Collections | undefined;
  /**
   * Why calls fail for now, in a sentence; undefined while the stores can do all. Stores on this
   * machine have none.
   */
  readonly problem?: (() => string | undefined) | undefined;
  /** What the shared store was asked for; with `shared`. */
  readonly figures?: (() => SharedStoreMetrics) | undefined;
  /** Called when the stores are closed: closes what they share. Never rejects. */
  readonly close?: () => Promise<void>;
  /** Keys for names that hosts have in common; the files of the repo otherwise. */
  readonly keys?: KeyHolder | undefined;
  /** Brings the copy of the metadata up to date, where one is kept; never rejects. */
  readonly copyMetadata?: () => Promise<void>;
}

/**
 * Stores for `NodeOptions.stores` that are gone with the process: for tests, and for nodes that
 * only fetch.
 */
export const memoryStores = (): Stores => ({ blocks: memoryBlocks(), metadata: memoryMetadata() });

/** Called with a sentence that the operator should read. */
export type Notice = (sentence: string) => void;

/**
 * Blocks are checked whenever they are read, so a damaged one is never passed on. @throws NodeError
 * STORE_FULL, STORE_BROKEN
 */
export function openBlocks(
  { kind, blocks, shardFunc, namedAfter }: StorePaths,
  onNotice: Notice,
  makeRoom?: MakeRoom,
): Promise<BlockStore> {
  if (kind === "flatfs") return openFlatfs(blocks, { shardFunc, namedAfter, verifyOnRead: true });
  return openSegmentStore(blocks, { verifyOnRead: true, onNotice, makeRoom });
}

/** @throws NodeError STORE_BROKEN */
export const openMetadata = (
  { metadata }: Pick<StorePaths, "metadata">,
  onNotice: Notice,
  makeRoom?: MakeRoom,
): Promise<MetadataStore> => openLmdbMetadata(metadata, onNotice, makeRoom);

/** The file with the copy of the metadata: beside its folder. */
export const metadataCopy = ({ metadata }: StorePaths): string => `${metadata}.copy`;

/** Beside the blocks: what of them was damaged. */
export { lostAndFound } from "../../storage/blockstore/segments/lost_and_found.ts";

/**
 * A copy from a backup, which becomes the metadata when the stores are opened: beside its folder as
 * well.
 */
export const metadataToRestore = ({ metadata }: Pick<StorePaths, "metadata">): string => `${metadata}.restore`;

/** The same metadata, of which a copy is kept. */
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
 * Brings the metadata up to date with go-ipfs or Kubo, and the blocks where they are in the same
 * database.
 *
 * @throws NodeError DATABASE_IN_USE, DATABASE_DAMAGED, BLOCK_CORRUPT; the signal's reason when it
 * aborts
 */
export async function importForeign({ from, metadataFolder, to, onNotice, ...options }: ForeignImport): Promise<void> {
  // Loaded on demand: most repos have no such database.
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

/** Blocks of a database are stored in another form than they are referred to. */
const firstOf = (blocks: BlockStore, [form]: readonly CID[]) => (form === undefined ? undefined : blocks.get(form));
