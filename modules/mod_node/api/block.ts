/** Single blocks. */

import type { CID } from "multiformats/cid";
import { cidDefaults } from "../content/adder/import_config.ts";
import { putBlocks } from "../content/adder/put_blocks.ts";
import { removeBlocks } from "../content/pins/remove_blocks.ts";
import { identity } from "../formats/cid/hashes.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import type { BufferPool } from "../storage/blockstore/buffer_pool.ts";
import {
  blockFormat,
  codecFormat,
  makeBlock,
  readBlockBody,
  requireInline,
  requireSize,
} from "../storage/blockstore/make_block.ts";
import { failure } from "../util/errors.ts";
import { type ByteSource, type CallOptions, type IpfsPath, listOf, pathText, piecesOf, readOptions } from "./common.ts";

export interface BlockGetOptions extends CallOptions {
  /** Pool of buffers to read into; the caller returns the block with `buffers.release(block)`. */
  readonly buffers?: BufferPool | undefined;
}

export interface BlockPutOptions extends CallOptions {
  /**
   * Codec of the CID by name, or `v0` for a CID of version 0. `v0` is the default if the other
   * options allow it.
   */
  readonly format?: string | undefined;
  /**
   * Codec of the CID by its name or number in the multicodec table; used if `format` is not given.
   */
  readonly cidCodec?: string | undefined;
  /** Maximum size of the block in bytes; unlimited by default. */
  readonly maxBlock?: number | undefined;
  /**
   * Maximum size in bytes of a block that is stored in its CID (identity hash); unlimited by
   * default.
   */
  readonly maxInline?: number | undefined;
  /** Hash function by name; `sha2-256` by default. */
  readonly mhtype?: string | undefined;
  /** If `mhtype` is not given, use `Import.HashFunction` of the configuration. */
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
  /** Resolves to the bytes of a block. @throws NodeError BLOCK_NOT_FOUND */
  get(cid: IpfsPath, options?: BlockGetOptions): Promise<Uint8Array>;
  /**
   * Stores bytes as a block and resolves when it is on the disk. A source may reuse the memory of a
   * piece as soon as the next piece is requested.
   */
  put(block: ByteSource, options?: BlockPutOptions): Promise<CID>;
  /** Removes blocks that are not pinned, and yields a result for each. */
  rm(cid: IpfsPath | readonly IpfsPath[], options?: BlockRmOptions): AsyncIterable<BlockRmResult>;
  stat(cid: IpfsPath, options?: CallOptions): Promise<BlockStatResult>;
}

/** Number of blocks that are removed per lock and per check of the pins. */
const MAX_REMOVED_TOGETHER = 256;

/** @throws NodeError for an unknown codec or hash function */
function formOf(
  { format, cidCodec, mhtype: given, mhlen = -1, version, importDefaults }: BlockPutOptions,
  { repo: { config } }: LowLevelNode,
) {
  const mhtype = (importDefaults === true ? cidDefaults({ hash: given }, config).hash : given) ?? "sha2-256";
  const form =
    cidCodec !== undefined && format === undefined
      ? codecFormat(cidCodec, mhtype, mhlen)
      : blockFormat(format ?? (version === 0 ? "v0" : ""), mhtype, mhlen);
  // Callers that give a codec of the CID expect the error texts of Kubo 0.43.
  if (cidCodec !== undefined && form.hash !== identity && mhlen > form.hash.length) {
    throw failure("HASH_LENGTH_INVALID", { reason: "invalid cid: requested length was too large for digest" });
  }
  return form;
}

export function blockApi(node: LowLevelNode): BlockApi {
  return {
    async get(path, options = {}) {
      const how = readOptions(options);
      const { cid } = await node.resolve(pathText(path), how);
      return node.blocks.get(cid, { ...how, buffers: options.buffers });
    },
    async put(block, options = {}) {
      const { pin, maxBlock, maxInline } = options;
      const { signal, offline } = readOptions(options);
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
      const how = readOptions(options);
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
      const how = readOptions(options);
      const { cid } = await node.resolve(pathText(path), how);
      return { cid, size: (await node.blocks.get(cid, how)).length };
    },
  };
}
