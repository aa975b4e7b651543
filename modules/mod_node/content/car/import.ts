/** Reads archives into the store, for `dag import`. */

import type { CID } from "multiformats/cid";
import { hashCoded, hashUnavailable, identity, multihash, requireAllowed } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { linksWithTurns } from "../../formats/ipld/links.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { requireInline, requireSize } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { CarRules } from "./payload.ts";
import { brokenAfter, type CarPart, readCar } from "./read.ts";

/**
 * A batch is checked and stored once it has this many blocks or bytes. `MAX_BATCHES` is how many
 * batches are processed concurrently.
 */
const MAX_BATCH_BLOCKS = 1024;
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_BATCHES = 4;

/** Blocks and bytes that were read. Duplicates are counted each time. */
export interface CarCounts {
  blocks: number;
  bytes: number;
}

export interface CarImportOptions {
  /** Counters that this import increases. */
  readonly counts?: CarCounts | undefined;
  /** Maximum size of a block in bytes; unlimited by default. */
  readonly maxBlock?: number | undefined;
  /** Maximum size in bytes of a block that is its own CID (identity hash); unlimited by default. */
  readonly maxInline?: number | undefined;
  /** Rules of the archive; "0.43" by default. */
  readonly rules?: CarRules | undefined;
}

/**
 * Checks and stores every block of an archive as it arrives, in constant memory. When it requests
 * the next piece of the source, it no longer uses the previous one.
 *
 * @returns the roots of the header
 * @throws NodeError at the first fault; the blocks before it may be stored
 */
export async function importCar(
  blocks: BlockService,
  source: AsyncIterable<Uint8Array>,
  { counts = { blocks: 0, bytes: 0 }, rules = "0.43", ...options }: CarImportOptions = {},
): Promise<readonly CID[]> {
  const roots: CID[] = [];
  let last: CID | undefined;
  const running: Promise<void>[] = [];
  try {
    for await (const batch of batchesOf(readCar(source, blocks.buffers, rules), (named) => {
      for (const root of named) roots.push(root);
    })) {
      counts.blocks += batch.length;
      for (const { bytes } of batch) counts.bytes += bytes.length;
      const work = checkAndPut(blocks, batch, last, { rules, ...options });
      last = batch.at(-1)?.cid;
      // The loop reports the rejection when it awaits the batches in order.
      work.catch(() => {});
      running.push(work);
      if (running.length >= MAX_BATCHES) await running.shift();
    }
    while (running.length > 0) await running.shift();
  } finally {
    // No batch may be running when this function ends.
    await Promise.allSettled(running);
  }
  return roots;
}

async function* batchesOf(
  source: AsyncIterable<CarPart>,
  named: (roots: readonly CID[]) => void,
): AsyncGenerator<readonly Block[], void, undefined> {
  let batch: Block[] = [];
  let size = 0;
  for await (const { roots, blocks } of source) {
    if (roots !== undefined) named(roots);
    for (const block of blocks) {
      batch.push(block);
      size += block.bytes.length;
    }
    if (batch.length < MAX_BATCH_BLOCKS && size < MAX_BATCH_BYTES) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

/** @param before the last block of the previous batch */
async function checkAndPut(
  blocks: BlockService,
  batch: readonly Block[],
  before: CID | undefined,
  { maxBlock, maxInline, rules }: CarImportOptions,
): Promise<void> {
  for (const block of batch) {
    requireInline(block.cid, maxInline);
    await requireImportable(block, () => requireSize(block.bytes, maxBlock));
  }
  const checks: Promise<void>[] = [];
  for (const [at, block] of batch.entries()) {
    const check = checkHash(block, at === 0 ? before : batch[at - 1]?.cid);
    if (check !== undefined) checks.push(check);
  }
  await Promise.all(checks);
  const cbor = rules === "0.9" ? "lenient" : "strict";
  for (const block of batch) await requireImportable(block, () => linksWithTurns(block.cid, block.bytes, cbor));
  // As in the reference, blocks of an archive are not announced here. The reprovider announces them
  // later.
  await blocks.put(batch, { offline: true });
}

/**
 * Adds the CID of the block to a failure of its check. Returns no promise if the check returns
 * none. @throws NodeError
 */
function requireImportable({ cid }: Block, check: () => unknown): Promise<void> | undefined {
  const fail = (error: unknown): never => {
    if (!(error instanceof NodeError)) throw error;
    throw failure("BLOCK_NOT_IMPORTED", { reason: error.message, cid: String(cid) }, error);
  };
  try {
    const checked = check();
    return checked instanceof Promise ? checked.then(() => {}, fail) : undefined;
  } catch (error) {
    return fail(error);
  }
}

/** Checks small blocks synchronously. @throws NodeError when the bytes do not match the CID */
function checkHash({ cid, bytes }: Block, before: CID | undefined): Promise<void> | undefined {
  const { code, digest } = cid.multihash;
  const hash = hashCoded(code);
  const made = hash?.digest?.(bytes);
  if (made === undefined) throw hashUnavailable(code);
  const compare = (found: Uint8Array): Promise<void> | undefined => {
    const cut = code === identity.code ? found : found.subarray(0, digest.length);
    return Buffer.compare(cut, digest) === 0 ? undefined : mismatch(cid, bytes, before);
  };
  return made instanceof Promise ? made.then(compare) : compare(made);
}

async function mismatch(cid: CID, bytes: Uint8Array, before: CID | undefined): Promise<void> {
  requireAllowed(cid.multihash);
  const hash = hashCoded(cid.multihash.code) as NonNullable<ReturnType<typeof hashCoded>>;
  const length = cid.multihash.code === identity.code ? -1 : cid.multihash.digest.length;
  const made = makeCid(cid.version, cid.code, await multihash(hash, bytes, length));
  throw brokenAfter(before, failure("BLOCK_OF_OTHER_HASH", { cid: String(cid), made: String(made) }));
}
