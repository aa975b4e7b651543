/** Single blocks. */

import type { CID } from "multiformats/cid";
import { cidDefaults } from "../content/adder/import_config.ts";
import { putBlocks } from "../content/adder/put_blocks.ts";
import { removeBlocks } from "../content/pins/remove_blocks.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import type { BufferPool } from "../storage/blockstore/buffer_pool.ts";
import {
  blockFormat,
  codecFormat,
  makeBlock,
  readBlockBody,
  requireInline,
  requireSize,
} from "../storage/blockstore/make_block.ts";
import { type ByteSource, type CallOptions, type IpfsPath, listOf, pathText, piecesOf, reading } from "./common.ts";

export interface BlockGetOptions extends CallOptions {
  /** Pool of buffers to read into; the caller returns the block with `buffers.release(block)`. */
  readonly buffers?: BufferPool | undefined;
}

export interface BlockPutOptions extends CallOptions {
  /** Codec of the CID by name, or `v0` for a CID of version 0; `v0` by default where the other options allow it. */
  readonly format?: string | undefined;
  /** Codec of the CID by its name in the multicodec table, or its number, where no `format` is given. */
  readonly cidCodec?: string | undefined;
  /** Bytes of the greatest block that is taken; any by default. */
  readonly maxBlock?: number | undefined;
  /** Greatest block that may be put into its CID (identity hash), in bytes; any by default. */
  readonly maxInline?: number | undefined;
  /** Hash function by name; `sha2-256` by default. */
  readonly mhtype?: string | undefined;
  /** Where none is given, take the hash function from `Import.HashFunction` of the configuration. */
  readonly importDefaults?: boolean | undefined;
  /** Length of the digest in bytes; the whole digest by default. */
  readonly mhlen?: number | undefined;
  /** Version of the CID, 0 or 1; a `format` other than `v0` implies 1. */
  readonly version?: 0 | 1 | undefined;
  /** Pin the block recursively. */
  readonly pin?: boolean | undefined;
}

export interface BlockRmOptions extends CallOptions {
  /** Do not report blocks that do not exist. */
  readonly force?: boolean | undefined;
  /** Only report failures. */
  readonly quiet?: boolean | undefined;
}

export interface BlockRmResult {
  readonly cid: CID;
  /** Why the block was not removed: it is pinned, or does not exist. */
  readonly error?: Error;
}

export interface BlockStatResult {
  readonly cid: CID;
  /** Size in bytes. */
  readonly size: number;
}

export interface BlockApi {
  /** The bytes of a block. @throws NodeError BLOCK_NOT_FOUND */
  get(cid: IpfsPath, options?: BlockGetOptions): Promise<Uint8Array>;
  /** Stores bytes as a block; it is on the disk when this resolves. A source may use a piece again when the next one is asked for. */
  put(block: ByteSource, options?: BlockPutOptions): Promise<CID>;
  /** Removes blocks that are not pinned, and yields a result for each. */
  rm(cid: IpfsPath | readonly IpfsPath[], options?: BlockRmOptions): AsyncIterable<BlockRmResult>;
  stat(cid: IpfsPath, options?: CallOptions): Promise<BlockStatResult>;
}

/** Number of blocks that are removed under one lock, after one check of the pins. */
const MAX_REMOVED_TOGETHER = 256;

/** @throws NodeError for a codec or hash function that is not known */
function formOf(
  { format, cidCodec, mhtype: given, mhlen = -1, version, importDefaults }: BlockPutOptions,
  { repo: { config } }: LowLevelNode,
) {
  const mhtype = (importDefaults === true ? cidDefaults({ hash: given }, config).hash : given) ?? "sha2-256";
  if (cidCodec !== undefined && format === undefined) return codecFormat(cidCodec, mhtype, mhlen);
  return blockFormat(format ?? (version === 0 ? "v0" : ""), mhtype, mhlen);
}

export function blockApi(node: LowLevelNode): BlockApi {
  return {
    async get(path, options = {}) {
      const how = reading(options);
      const { cid } = await node.resolve(pathText(path), how);
      return node.blocks.get(cid, { ...how, buffers: options.buffers });
    },
    async put(block, options = {}) {
      const { pin, maxBlock, maxInline } = options;
      const { signal, offline } = reading(options);
      const form = formOf(options, node);
      const { buffers } = node.blocks;
      const bytes = await readBlockBody(piecesOf(block), buffers);
      requireSize(bytes, maxBlock);
      const { cid } = await makeBlock(bytes, form);
      requireInline(cid, maxInline);
      node.blocks.denials?.requireBlock(cid);
      await putBlocks(node, [{ cid, bytes, release: () => buffers.release(bytes) }], { pin, signal, offline });
      return cid;
    },
    async *rm(given, { force, quiet, ...options } = {}) {
      const how = reading(options);
      const cids = [];
      const finding = { ...how, evenDenied: true };
      for (const path of listOf(given)) cids.push((await node.resolve(pathText(path), finding)).cid);
      while (cids.length > 0) {
        const release = await node.lock.acquireExclusive(how.signal);
        const some = cids.splice(0, MAX_REMOVED_TOGETHER);
        const removing = removeBlocks(node.blocks, node.pins, some, {
          ignoreMissing: force === true,
          signal: how.signal,
        });
        for (const { cid, fault } of await removing.finally(release)) {
          if (fault !== undefined) yield { cid, error: fault };
          else if (quiet !== true) yield { cid };
        }
      }
    },
    async stat(path, options = {}) {
      const how = reading(options);
      const { cid } = await node.resolve(pathText(path), how);
      return { cid, size: (await node.blocks.get(cid, how)).length };
    },
  };
}
