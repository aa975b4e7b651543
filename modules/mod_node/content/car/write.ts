/** Writes blocks as an archive ("CARv1 specification"). */
import type { CID } from "multiformats/cid";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { JoinedPieces, MAX_JOINED_BYTES } from "../unixfs/joined_pieces.ts";
import { writeHeader } from "./header.ts";

interface CarBlock {
  readonly cid: CID;
  readonly bytes: Uint8Array;
}

/**
 * The pieces of an archive, which are not changed afterwards. With `buffers`, the pool that the blocks are from, whoever consumes the
 * pieces releases each to it. @throws what the source throws, after the pieces before it
 */
export async function* writeCar(
  roots: readonly CID[],
  blocks: AsyncIterable<CarBlock>,
  buffers?: BufferPool,
): AsyncGenerator<Uint8Array, void, undefined> {
  const out = new JoinedPieces(buffers);
  const header = writeHeader(roots);
  out.add(lengthOf(header.length));
  out.add(header);
  let failed: { readonly reason: unknown } | undefined;
  const source = blocks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await source.next().catch((reason: unknown) => {
        failed = { reason };
        return { done: true, value: undefined } as const;
      });
      if (next.done === true) break;
      const { cid, bytes } = next.value;
      out.add(lengthOf(cid.bytes.length + bytes.length));
      out.add(cid.bytes);
      if (bytes.length < MAX_JOINED_BYTES) {
        out.add(bytes);
        buffers?.release(bytes);
      } else {
        yield* out.take();
        yield bytes;
      }
      if (out.isDue) yield* out.take();
    }
    yield* out.take();
    if (failed !== undefined) throw failed.reason;
  } finally {
    await source.return?.();
  }
}

function lengthOf(length: number): Uint8Array {
  const bytes = new Uint8Array(varintLength(length));
  writeVarint(bytes, 0, length);
  return bytes;
}
