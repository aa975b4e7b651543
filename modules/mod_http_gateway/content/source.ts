/** Bytes from which ranges can be served. */
import { fileSize, readFile, readWithin, type UnixfsNode } from "modhost/node";
import type { ByteRange } from "../../../core/http/index.ts";
import type { Gathered, Reading } from "../reading.ts";

export type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

export interface Source {
  readonly size: number;
  /** All bytes, if they are in memory. */
  readonly bytes?: Uint8Array;
  /** Returns the bytes of a range, without reading blocks beyond it. */
  pieces(range: ByteRange): Pieces;
  /** Returns a short range at once. */
  few(range: ByteRange): Promise<Gathered>;
  /** Returns a piece to its pool when it is no longer used. */
  readonly release: (piece: Uint8Array) => void;
}

/** Returns a source for one block, or for other bytes in memory. */
export function bytesSource(bytes: Uint8Array): Source {
  return {
    size: bytes.length,
    bytes,
    async *pieces({ first, last }) {
      yield bytes.subarray(first, last + 1);
    },
    async few({ first, last }) {
      const few = bytes.subarray(first, last + 1);
      return { start: few, body: few };
    },
    release: () => undefined,
  };
}

/** Returns a source for a file. A file of one block is already in memory. */
export function fileSource(file: UnixfsNode, reading: Reading): Source {
  if (file.links.length === 0) return bytesSource(file.unixfs.data ?? new Uint8Array());
  const { readLeaf: read, buffers, leases } = reading;
  const content = ({ first, last }: ByteRange) =>
    readFile(file, read, { offset: first, length: last - first + 1, buffers });
  return {
    size: fileSize(file),
    pieces: (range) => leases.pieces(content(range)),
    few: async (range) => {
      const length = range.last - range.first + 1;
      const within = { offset: range.first, length };
      const bytes = await readWithin(file, within, { read, readNode: reading.readPath });
      if (bytes !== undefined) return reading.few(bytes);
      return reading.gather(content(range), length, (piece) => buffers.release(piece));
    },
    release: (piece) => leases.release(piece),
  };
}
