/** Bytes that ranges are served of. */
import { fileSize, readFile, readWithin, type UnixfsNode } from "modhost/node";
import type { ByteRange } from "../../../core/http/index.ts";
import type { Gathered, Reading } from "../reading.ts";

export type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

export interface Source {
  readonly size: number;
  /** All bytes, where they are in memory. */
  readonly bytes?: Uint8Array;
  /** The bytes of a range; blocks beyond it are not read. */
  pieces(range: ByteRange): Pieces;
  /** The same at once, for a few bytes. */
  few(range: ByteRange): Promise<Gathered>;
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
    async few({ first, last }) {
      const few = bytes.subarray(first, last + 1);
      return { start: few, body: few };
    },
    release: () => undefined,
  };
}

/** A file; one of a single block is in memory already. */
export function fileSource(file: UnixfsNode, reading: Reading): Source {
  if (file.links.length === 0) return bytesSource(file.unixfs.data ?? new Uint8Array());
  const { readLeaf: read, buffers, lending } = reading;
  const content = ({ first, last }: ByteRange) =>
    readFile(file, read, { offset: first, length: last - first + 1, buffers });
  return {
    size: fileSize(file),
    pieces: (range) => lending.pieces(content(range)),
    few: async (range) => {
      const length = range.last - range.first + 1;
      const within = { offset: range.first, length };
      const bytes = await readWithin(file, within, { read, readNode: reading.readPath });
      if (bytes !== undefined) return reading.few(bytes);
      return reading.gather(content(range), length, (piece) => buffers.release(piece));
    },
    release: (piece) => lending.release(piece),
  };
}
