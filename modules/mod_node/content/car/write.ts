/** Writes blocks as an archive ("CARv1 specification"). */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { JoinedPieces, MAX_JOINED_BYTES } from "../unixfs/joined_pieces.ts";
import { writeHeader } from "./header.ts";

export interface CarBlock {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

/** Whether the bytes of a block were read. */
export const isRead = (block: { readonly cid: CID; readonly bytes: Uint8Array | undefined }): block is CarBlock =>
  block.bytes !== undefined;

/**
 * Writes an archive of blocks, which come in pages. The pieces are not changed after they were
 * yielded. With `buffers`, the pool of the blocks, the consumer of the pieces releases each of them
 * to the pool.
 *
 * @throws what the source throws, after the pieces before it
 */
export async function* writeCar(
  roots: readonly CID[],
  pages: AsyncIterable<readonly CarBlock[]>,
  buffers?: BufferPool,
): AsyncGenerator<Uint8Array, void, undefined> {
  const out = new JoinedPieces(buffers);
  const header = writeHeader(roots);
  out.addVarint(header.length);
  out.add(header);
  let failed: { readonly reason: unknown } | undefined;
  const source = pages[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await source.next().catch((reason: unknown) => {
        failed = { reason };
        return { done: true, value: undefined } as const;
      });
      if (next.done === true) break;
      for (const { cid, bytes } of next.value) {
        out.addVarint(cid.bytes.length + bytes.length);
        out.add(cid.bytes);
        if (bytes.length < MAX_JOINED_BYTES) {
          out.add(bytes);
          buffers?.release(bytes);
        } else {
          yield* out.take();
          yield bytes;
        }
        if (out.isFull) yield* out.take();
      }
      if (out.isDue) yield* out.take();
    }
    yield* out.take();
    if (failed !== undefined) throw failed.reason;
  } finally {
    await source.return?.();
  }
}
