/** Makes the block of a node: its CID, and where it goes. */

import type { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { dagPb } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashUnavailable, identity, sha256 } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { cumulativeSize, encodePb, type PbNode } from "../../formats/dag_pb/dag_pb.ts";
import { requireInline } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";

/** How CIDs of new nodes are made. */
export interface CidSettings {
  readonly version: 0 | 1;
  readonly hash: HashFunction;
  /** Nodes of at most this many bytes are inlined in their CID; undefined: none are. */
  readonly inlineLimit?: number | undefined;
  /**
   * Bytes of the greatest node that is its own CID by the hash function `identity`; any by default.
   */
  readonly maxInline?: number | undefined;
  /**
   * Hash function of dag-pb nodes over `maxInline`; without it they are refused, as raw blocks are.
   */
  readonly hashOfLarge?: HashFunction | undefined;
}

export const defaultCid: CidSettings = { version: 0, hash: sha256 };

/**
 * Takes new blocks, with their links to blocks that it took before. Callers await what it returns:
 * that is the backpressure of the disk.
 */
export type BlockSink = (block: Block, links?: readonly { readonly cid: CID }[]) => Promise<void> | undefined;

/** What a parent needs to know of a node. */
export interface Built {
  readonly cid: CID;
  /** The block and everything below it, in bytes: the Tsize of links to it. */
  readonly size: number;
}

const inlined = (codec: number, bytes: Uint8Array) => makeCid(1, codec, createDigest(identity.code, bytes));

/** The CID of a block under these settings. Raw blocks always have version 1. */
export function cidOf(codec: number, bytes: Uint8Array, settings: CidSettings): CID | Promise<CID> {
  const { version, hash, inlineLimit, maxInline = Number.POSITIVE_INFINITY, hashOfLarge } = settings;
  if (inlineLimit !== undefined && bytes.length <= inlineLimit) return inlined(codec, bytes);
  if (hash.code === identity.code) {
    if (hashOfLarge !== undefined && codec === dagPb && bytes.length > maxInline) {
      return cidOf(codec, bytes, { version, hash: hashOfLarge });
    }
    const cid = inlined(codec, bytes);
    requireInline(cid, maxInline);
    return cid;
  }
  if (hash.digest === undefined) throw hashUnavailable(hash.code);
  const of = (digest: Uint8Array) => {
    const made = createDigest(hash.code, digest);
    return makeCid(codec === dagPb ? version : 1, codec, made);
  };
  const digest = hash.digest(bytes);
  return digest instanceof Promise ? digest.then(of) : of(digest);
}

/** Writes a node, and gives what its parent needs to know. */
export async function buildNode(node: PbNode, settings: CidSettings, sink: BlockSink): Promise<Built> {
  const bytes = encodePb(node);
  const cid = await cidOf(dagPb, bytes, settings);
  await sink({ cid, bytes }, node.links);
  return { cid, size: cumulativeSize({ length: bytes.length, links: node.links }) };
}
