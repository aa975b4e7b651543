/** Copies the blocks of a Kubo that has them in its database, and not in files. */
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

/** Followed by the base32 of a multihash. */
const prefix = "/blocks/";

export interface BlockImportOptions {
  readonly onProgress?: ((progress: { readonly blocks: number; readonly bytes: number }) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stores what `to` lacks: each as a raw block, since the database does not tell codecs. Durable
 * when it resolves.
 *
 * @throws NodeError BLOCK_CORRUPT for one whose bytes have another hash; the signal's reason when
 * it aborts
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
      // The value is a part of something larger.
      await batch.add({ cid, bytes: Buffer.from(value) });
    }
    blocks += 1;
    onProgress({ blocks, bytes });
  }
  await batch.flush();
  await to.sync();
}

/** In whatever form: a collection of garbage keeps the one that is referred to. */
const isHere = async (store: BlockStore, cid: CID): Promise<boolean> =>
  (await store.has(cid)) || (await store.forms(cid)).length > 0;

interface Parts {
  readonly blocks: BlockStore;
  readonly metadata: MetadataStore;
}

/**
 * Stores what is pinned, and the files, in the form in which they are referred to: the copied
 * blocks had one for all.
 */
export async function storeForms({ blocks, metadata }: Parts, signal: AbortSignal | undefined): Promise<void> {
  const service = new BlockService(blocks);
  const pins = new Pins(service, metadata, new SharedLock());
  const find = (cid: CID) => service.find(cid);
  const seen = new RetainedBlocks();
  const marking = { buffers: service.buffers, signal };
  // What is not complete stays so: nobody is told, as it was the same before.
  for await (const root of pins.list("recursive")) await markPresent(root, seen, find, marking);
  for await (const cid of pins.list("direct")) await find(cid);
  const root = await metadata.get(rootKey);
  if (root !== undefined) await markPresent(castCid(root), seen, find, marking);
  await blocks.sync();
}
