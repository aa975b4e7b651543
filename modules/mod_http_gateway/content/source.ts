/** Bytes that ranges are served of. */
import { fileSize, readFile, type UnixfsNode } from "modhost/node";
import type { ByteRange } from "../../../core/http/index.ts";
import type { Reading } from "../reading.ts";

export type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

export interface Source {
  readonly size: number;
  /** All bytes, where they are in memory. */
  readonly bytes?: Uint8Array;
  /** The bytes of a range; blocks beyond it are not read. */
  pieces(range: ByteRange): Pieces;
  /** Takes a piece back that is no longer used. */
  readonly release: (piece: Uint8Array) => void;
}

/** One block, or what else is in memory. */
export function bytesSource(bytes: Uint8Array): Source {
  return {
    size: bytes.length,
    bytes,
    async *pieces({ first, last }) {
      yield bytes.subarray(first, last + 1);
    },
    release: () => undefined,
  };
}

/** A file; one of a single block is in memory already. */
export function fileSource(file: UnixfsNode, reading: Reading): Source {
  if (file.links.length === 0) return bytesSource(file.unixfs.data ?? new Uint8Array());
  const { read, buffers, lending } = reading.pooled();
  return {
    size: fileSize(file),
    pieces: ({ first, last }) =>
      lending.pieces(readFile(file, read, { offset: first, length: last - first + 1, buffers })),
    release: (piece) => lending.release(piece),
  };
}
