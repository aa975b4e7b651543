/** Returns files and trees as archives. */
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { inSession } from "../content/dag/reader.ts";
import { parsePath } from "../content/resolver/path.ts";
import { fileSize, isDirectory } from "../content/unixfs/node.ts";
import { bulkReader, openFile } from "../content/unixfs/open.ts";
import { readFile } from "../content/unixfs/read.ts";
import { exportTar } from "../content/unixfs/tar.ts";
import { cumulativeSize } from "../formats/dag_pb/dag_pb.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { once, type SizedByteStream, SizedLazyByteStream } from "./byte_stream.ts";
import { type CallOptions, type IpfsPath, pathText, readOptions } from "./common.ts";

export interface GetOptions extends CallOptions {
  /** Return a tar archive, even with `compress`. */
  readonly archive?: boolean | undefined;
  /** Compress with gzip; without `archive` a single file is not put into a tar archive. */
  readonly compress?: boolean | undefined;
  /** Compression level, from 1 (fastest) to 9 (smallest). */
  readonly compressionLevel?: number | undefined;
  /**
   * Give entries without a time the current time including its fraction of a second, as Kubo does.
   */
  readonly exactNow?: boolean | undefined;
}

export interface GetApi {
  /**
   * Returns a file or a tree as a tar archive, or as the options say. `length` is the length of the
   * contents.
   *
   * @throws NodeError
   */
  get(path: IpfsPath, options?: GetOptions): SizedByteStream;
}

export function getApi(node: LowLevelNode): GetApi {
  const { buffers } = node.blocks;
  return {
    get(path, options = {}) {
      const { archive, compress = false, compressionLevel, exactNow } = options;
      const opened = once(async () => {
        const level = compress ? gzipLevel(compressionLevel) : undefined;
        const session = inSession(readOptions(options));
        const { cid } = await node.resolve(pathText(path), session);
        return { level, session, root: await openFile(cid, node.reader(session)) };
      });
      return new SizedLazyByteStream({
        async length() {
          const { root } = await opened();
          return isDirectory(root) ? cumulativeSize(root) : fileSize(root);
        },
        async open() {
          const { level, session, root } = await opened();
          const packed = archive === true || !compress;
          if (!packed && isDirectory(root)) throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "file is not regular" });
          const name = parsePath(pathText(path)).text.split("/").at(-1) as string;
          const source = packed
            ? exportTar(root, name, node.reader({ ...session, buffers }), {
                buffers,
                exactNow,
                wholeSeconds: archive === true,
              })
            : readFile(root, bulkReader(node.reader(session)));
          return compress ? gzip(source, level) : source;
        },
        release: (piece) => buffers.release(piece),
      });
    },
  };
}

async function* gzip(source: AsyncIterable<Uint8Array>, level: number | undefined): AsyncGenerator<Uint8Array> {
  const packed = createGzip({ level });
  // `pipeline` passes failures of the source on to the reader of `packed`.
  pipeline(source, packed).catch(() => {});
  yield* packed;
}

/** Returns the zlib level; undefined for its default. */
function gzipLevel(level: number | undefined): number | undefined {
  if (level !== undefined && (level < 1 || level > 9))
    throw failure("OPTION_INVALID", { reason: "compression level must be between 1 and 9" });
  return level;
}
