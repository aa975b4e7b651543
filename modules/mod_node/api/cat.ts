/** Reading files. */
import { inSession, type ReadBlock } from "../content/dag/reader.ts";
import { fileSize, isDirectory, type UnixfsNode } from "../content/unixfs/node.ts";
import { bulkReader, openFile } from "../content/unixfs/open.ts";
import { readFile } from "../content/unixfs/read.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { once, type SizedByteStream, SizedLazyByteStream } from "./byte_stream.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, type ReadOptions, readOptions } from "./common.ts";

export interface CatOptions extends CallOptions {
  /** Byte offset to start at. */
  readonly offset?: number | undefined;
  /** Maximum number of bytes to return. */
  readonly length?: number | undefined;
}

export interface CatApi {
  /**
   * Reads the bytes of a file, or of several files one after the other.
   *
   * @throws NodeError IS_DIRECTORY, and for blocks that cannot be read
   */
  cat(path: IpfsPath | readonly IpfsPath[], options?: CatOptions): SizedByteStream;
}

interface CatPart {
  readonly file: UnixfsNode;
  readonly offset: number;
  /** Bytes, according to the size that the file states. */
  readonly length: number;
  /** Maximum number of bytes to read. */
  readonly maxLength: number;
}

type Range = Pick<CatPart, "offset" | "length">;

export function catApi(node: LowLevelNode): CatApi {
  return {
    cat(path, options = {}) {
      const { offset = 0, length = Number.POSITIVE_INFINITY } = options;
      const parts = once(async () => {
        if (offset < 0) throw failure("OPTION_INVALID", { reason: "cannot specify negative offset" });
        if (length < 0) throw failure("OPTION_INVALID", { reason: "cannot specify negative length" });
        const how = readOptions(options);
        const { buffers } = node.blocks;
        const read = node.reader(inSession({ ...how, buffers }));
        const paths = length === 0 ? [] : listOf(path).map(pathText);
        return { read, buffers, found: await partsOf(paths, { offset, length }, { node, how, read }) };
      });
      return new SizedLazyByteStream({
        length: async () => (await parts()).found.reduce((sum, part) => sum + part.length, 0),
        async open() {
          const { read, buffers, found } = await parts();
          const source = contents(found, read, buffers);
          // Like the reference, seeks to the offset before the response begins, so that a failure
          // still sets its status.
          return offset > 0 ? started(source) : source;
        },
        release: (piece) => node.blocks.buffers.release(piece),
      });
    },
  };
}

/**
 * Treats the files as one long stream and returns the parts of it that are in the range. A file
 * that ends before the offset is skipped; a file that ends exactly at the offset is included.
 */
async function partsOf(
  paths: readonly string[],
  { offset, length }: Range,
  { node, how, read }: { readonly node: LowLevelNode; readonly how: ReadOptions; readonly read: ReadBlock },
): Promise<CatPart[]> {
  const parts: CatPart[] = [];
  let skip = offset;
  let left = length;
  for (const path of paths) {
    const { cid } = await node.resolve(path, inSession(how));
    const file = await openFile(cid, read);
    if (isDirectory(file)) throw failure("IS_DIRECTORY");
    const size = fileSize(file);
    if (skip > size) {
      skip -= size;
      continue;
    }
    const taken = Math.min(size - skip, left);
    // Like the reference, trusts the size that a file states only if the range ends within that
    // file.
    const maxLength = left <= size - skip ? left : Number.POSITIVE_INFINITY;
    parts.push({ file, offset: skip, length: taken, maxLength: maxLength });
    skip = 0;
    left -= taken;
    if (left === 0) break;
  }
  return parts;
}

type Bytes = AsyncGenerator<Uint8Array, void, undefined>;

async function* contents(
  parts: readonly CatPart[],
  read: ReadBlock,
  buffers: LowLevelNode["blocks"]["buffers"],
): Bytes {
  const readMany = bulkReader(read);
  for (const { file, offset, maxLength } of parts)
    yield* readFile(file, readMany, { offset, length: maxLength, buffers });
}

/** Resolves when the first bytes are available. @throws the error that prevents reading them */
async function started(source: Bytes): Promise<Bytes> {
  const first = await source.next();
  return (async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* source;
  })();
}
