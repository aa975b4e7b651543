/** Reads archives into the store, for `dag import`. */

import type { CID } from "multiformats/cid";
import { hashCoded, hashUnavailable, identity, multihash, requireAllowed } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { linksWithTurns } from "../../formats/ipld/links.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { requireSize } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { NodeError } from "../../util/errors.ts";
import { type CarPart, readCar } from "./read.ts";

/**
 * A batch is checked and put once it has this many blocks or bytes; and how many batches are processed concurrently.
 */
const MAX_BATCH_BLOCKS = 1024;
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_BATCHES = 4;

/** What was read, duplicates counted each time. */
export interface CarCounts {
  blocks: number;
  bytes: number;
}

export interface ImportOptions {
  /** Is added to. */
  readonly counts?: CarCounts | undefined;
  /** Bytes of the greatest block that is taken; any by default. */
  readonly maxBlock?: number | undefined;
}

/**
 * Checks and stores every block of an archive as it comes, in constant memory. A piece of the source is no longer used
 * when the next one is requested.
 *
 * @returns the roots of the header
 * @throws NodeError at the first fault; blocks before it may be stored
 */
export async function importCar(
  blocks: BlockService,
  source: AsyncIterable<Uint8Array>,
  { counts = { blocks: 0, bytes: 0 }, maxBlock }: ImportOptions = {},
): Promise<readonly CID[]> {
  const roots: CID[] = [];
  const running: Promise<void>[] = [];
  try {
    for await (const batch of batchesOf(readCar(source, blocks.buffers), (named) => {
      for (const root of named) roots.push(root);
    })) {
      counts.blocks += batch.length;
      for (const { bytes } of batch) counts.bytes += bytes.length;
      const work = checkAndPut(blocks, batch, maxBlock);
      // The rejection is seen when the batch is awaited in order.
      work.catch(() => {});
      running.push(work);
      if (running.length >= MAX_BATCHES) await running.shift();
    }
    while (running.length > 0) await running.shift();
  } finally {
    // Nothing may be under way when this function ends.
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

async function checkAndPut(blocks: BlockService, batch: readonly Block[], maxBlock?: number): Promise<void> {
  for (const block of batch) requireBlockSize(block, maxBlock);
  const checks: Promise<void>[] = [];
  for (const block of batch) {
    const check = checkHash(block);
    if (check !== undefined) checks.push(check);
  }
  await Promise.all(checks);
  for (const { cid, bytes } of batch) {
    const links = linksWithTurns(cid, bytes);
    if (links instanceof Promise) await links;
  }
  // As in the reference: what an archive brings is left to the reprovider.
  await blocks.put(batch, { offline: true });
}

/** @throws NodeError that names the block */
function requireBlockSize({ cid, bytes }: Block, maxBlock: number | undefined): void {
  try {
    requireSize(bytes, maxBlock);
  } catch (error) {
    throw new NodeError(`import failed at block "${cid}": ${(error as Error).message}`, { cause: error });
  }
}

/** Checks small blocks synchronously. @throws NodeError when the bytes do not fit the CID */
function checkHash({ cid, bytes }: Block): Promise<void> | undefined {
  const { code, digest } = cid.multihash;
  const hash = hashCoded(code);
  const made = hash?.digest?.(bytes);
  if (made === undefined) throw hashUnavailable(code);
  const compare = (found: Uint8Array): Promise<void> | undefined => {
    const cut = code === identity.code ? found : found.subarray(0, digest.length);
    return Buffer.compare(cut, digest) === 0 ? undefined : mismatch(cid, bytes);
  };
  return made instanceof Promise ? made.then(compare) : compare(made);
}

async function mismatch(cid: CID, bytes: Uint8Array): Promise<void> {
  requireAllowed(cid.multihash);
  const hash = hashCoded(cid.multihash.code) as NonNullable<ReturnType<typeof hashCoded>>;
  const length = cid.multihash.code === identity.code ? -1 : cid.multihash.digest.length;
  const made = makeCid(cid.version, cid.code, await multihash(hash, bytes, length));
  throw new NodeError(`mismatch in content integrity, name: ${cid}, data: ${made}`);
}
