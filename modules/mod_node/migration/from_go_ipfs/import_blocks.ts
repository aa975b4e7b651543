/** Copies the blocks of a Kubo repo that stores them in its database instead of in files. */
import { base32upper } from "multiformats/bases/base32";
import type { CID } from "multiformats/cid";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { rootKey } from "../../content/mfs/journal.ts";
import { markPresent } from "../../content/pins/gc.ts";
import { Pins } from "../../content/pins/pins.ts";
import { raw } from "../../formats/cid/codecs.ts";
import { matches } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { castCid } from "../../formats/cid/text.ts";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import { BlockService } from "../../storage/blockstore/block_service.ts";
import { RetainedBlocks } from "../../storage/blockstore/retained_blocks.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { SharedLock } from "../../util/async/shared_lock.ts";
import { failure } from "../../util/errors.ts";
import type { KeyValues } from "./databases.ts";
import { readable } from "./records.ts";

/** Prefix of the keys of blocks; the base32 of a multihash follows. */
const prefix = "/blocks/";

export interface BlockImportOptions {
  readonly onProgress?: ((progress: { readonly blocks: number; readonly bytes: number }) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stores the blocks that `to` lacks. Each becomes a raw block, because the database does not record
 * codecs. The blocks are durable when the promise resolves.
 * @throws NodeError BLOCK_CORRUPT for a block whose bytes have another hash; the signal's reason
 * when it aborts
 */
export async function importBlocks(
  database: KeyValues,
  to: BlockStore,
  { onProgress = () => {}, signal }: BlockImportOptions = {},
): Promise<void> {
  const batch = new BlockBatch(to);
  let blocks = 0;
  let bytes = 0;
  for await (const [key, value] of database.iterator({ gte: prefix, lt: `${prefix}\xff` })) {
    signal?.throwIfAborted();
    const cid = readable(key, () => {
      const multihash = decodeMultihash(base32upper.baseDecode(key.slice(prefix.length)));
      return makeCid(1, raw, multihash);
    });
    if (!(await isHere(to, cid))) {
      if (!(await matches(cid, value))) throw failure("BLOCK_CORRUPT", { cid: cid.toString() });
      bytes += value.length;
      // Copied, because the value is a part of a larger buffer.
      await batch.add({ cid, bytes: Buffer.from(value) });
    }
    blocks += 1;
    onProgress({ blocks, bytes });
  }
  await batch.flush();
  await to.sync();
}

/**
 * Whether the store has the block under any codec. Garbage collection later retains the CID that is
 * referred to.
 */
const isHere = async (store: BlockStore, cid: CID): Promise<boolean> =>
  (await store.has(cid)) || (await store.forms(cid)).length > 0;

interface Parts {
  readonly blocks: BlockStore;
  readonly metadata: MetadataStore;
}

/**
 * Stores pinned blocks and files again, under the CIDs that refer to them: `importBlocks` has
 * stored all blocks as raw ones.
 */
export async function storeForms({ blocks, metadata }: Parts, signal: AbortSignal | undefined): Promise<void> {
  const service = new BlockService(blocks);
  const pins = new Pins(service, metadata, new SharedLock());
  const find = (cid: CID) => service.find(cid);
  const seen = new RetainedBlocks();
  const marking = { buffers: service.buffers, signal };
  // Incomplete trees stay incomplete without a notice: they were incomplete before the import, too.
  for await (const root of pins.list("recursive")) await markPresent(root, seen, find, marking);
  for await (const cid of pins.list("direct")) await find(cid);
  const root = await metadata.get(rootKey);
  if (root !== undefined) await markPresent(castCid(root), seen, find, marking);
  await blocks.sync();
}
