/** The content codings: each compresses a whole body, or a body that arrives in pieces. */
import type { Transform } from "node:stream";
import { promisify } from "node:util";
import {
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  createZstdCompress,
  gzip,
  zstdCompress,
} from "node:zlib";

export const encodingNames = ["zstd", "br", "gzip"] as const;
export type EncodingName = (typeof encodingNames)[number];

/** "fast" for each response, "well" for cached files. */
export type Effort = "fast" | "well";

/** The common type of zlib's compressors. */
export type Coder = Transform & { flush(kind: number, done: () => void): void };

export interface Encoding {
  whole(body: Uint8Array, effort: Effort): Promise<Buffer>;
  stream(): Coder;
  /** The argument of `flush` that sends everything received so far. */
  readonly flushKind: number;
}

/**
 * Windows of 512 KiB bound the memory of a stream. RFC 9659 lets clients refuse zstd windows larger
 * than 8 MiB.
 */
const WINDOW_LOG = 19;
/** The output for one piece is read at once, so the compressor must never pause in between. */
const readableHighWaterMark = 2 ** 30;

const levels: Readonly<Record<EncodingName, Readonly<Record<Effort, number>>>> = {
  zstd: { fast: 3, well: 12 },
  br: { fast: 4, well: 9 },
  gzip: { fast: 4, well: 9 },
};

const brotli = (effort: Effort, size = 0) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: levels.br[effort],
    [constants.BROTLI_PARAM_LGWIN]: WINDOW_LOG,
    [constants.BROTLI_PARAM_SIZE_HINT]: size,
  },
});
const zstd = (effort: Effort) => ({
  params: {
    [constants.ZSTD_c_compressionLevel]: levels.zstd[effort],
    [constants.ZSTD_c_windowLog]: WINDOW_LOG,
  },
});

export const encodings: Readonly<Record<EncodingName, Encoding>> = {
  zstd: {
    whole: (body, effort) => promisify(zstdCompress)(body, zstd(effort)),
    stream: () => createZstdCompress({ ...zstd("fast"), readableHighWaterMark } as object) as unknown as Coder,
    flushKind: constants.ZSTD_e_flush,
  },
  br: {
    whole: (body, effort) => promisify(brotliCompress)(body, brotli(effort, body.length)),
    stream: () => createBrotliCompress({ ...brotli("fast"), readableHighWaterMark } as object) as unknown as Coder,
    flushKind: constants.BROTLI_OPERATION_FLUSH,
  },
  gzip: {
    whole: (body, effort) => promisify(gzip)(body, { level: levels.gzip[effort] }),
    stream: () => createGzip({ level: levels.gzip.fast, readableHighWaterMark } as object) as unknown as Coder,
    flushKind: constants.Z_SYNC_FLUSH,
  },
};
