/** Reads a range of a file that lies within a single leaf, without the overhead of reading many. */
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { isDirectory, isSized, partOfFile, type UnixfsNode } from "./node.ts";

/** Maximum size of a block in bytes. A node with more bytes has other blocks below it. */
const MAX_BLOCK_BYTES = 2 * 1024 * 1024;

export interface RangeReaders {
  /** Reads the leaf. */
  readonly read: ReadBlock;
  /** Reads the nodes on the path. Their blocks are not released. */
  readonly readNode: ReadBlock;
}

/**
 * Returns the bytes of a range that lies within a single leaf. Returns undefined for any other
 * range, and if more blocks would be needed to find it: the caller then uses `readFile`.
 *
 * @throws NodeError for a block that is missing or not part of a file
 */
export async function readWithin(
  root: UnixfsNode,
  { offset, length }: { readonly offset: number; readonly length: number },
  { read, readNode }: RangeReaders,
): Promise<Uint8Array | undefined> {
  let node = root;
  for (let start = 0; ; ) {
    const part = partAround(node, start, offset, offset + length);
    if (part === undefined) return undefined;
    const { cid } = part;
    start = part.start;
    if (cid.code === raw) {
      const span = { from: offset - start, to: offset - start + length };
      const bytes = (await read.part?.(cid, span)) ?? (await read(cid)).subarray(span.from, span.to);
      return bytes.length === length ? bytes : undefined;
    }
    if (part.size <= MAX_BLOCK_BYTES) return undefined;
    const coming = readSoon(readNode, cid);
    node = partOfFile(cid, coming instanceof Promise ? await coming : coming);
  }
}

/**
 * Returns the link below a node that contains the whole range, with its offset and size in the
 * file. The node begins at `start`.
 */
function partAround(
  node: UnixfsNode,
  start: number,
  from: number,
  to: number,
): { readonly cid: CID; readonly start: number; readonly size: number } | undefined {
  const { links, unixfs } = node;
  if (isDirectory(node) || !isSized(node)) return undefined;
  let at = start + (unixfs.data?.length ?? 0);
  if (from < at) return undefined;
  for (const [index, { cid }] of links.entries()) {
    const size = unixfs.blocksizes?.[index] as number;
    if (from < at + size) return to <= at + size ? { cid, start: at, size } : undefined;
    at += size;
  }
  return undefined;
}
