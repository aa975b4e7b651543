/** Builds the block of a node: calculates its CID and passes it to a sink. */

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
  /** Nodes of at most this many bytes become part of their CID; none if undefined. */
  readonly inlineLimit?: number | undefined;
  /**
   * Maximum size in bytes of a node that is its own CID by the hash function `identity`. Unlimited
   * by default.
   */
  readonly maxInline?: number | undefined;
  /**
   * Hash function of dag-pb nodes that are larger than `maxInline`. Without it they are rejected,
   * as raw blocks are.
   */
  readonly hashOfLarge?: HashFunction | undefined;
}

export const defaultCid: CidSettings = { version: 0, hash: sha256 };

/**
 * Receives new blocks, with their links to blocks that it received before. Callers await the
 * result: that is the backpressure of the disk.
 */
export type BlockSink = (block: Block, links?: readonly { readonly cid: CID }[]) => Promise<void> | undefined;

/** The data of a node that its parent needs. */
export interface Built {
  readonly cid: CID;
  /** Size in bytes of the block and everything below it: the Tsize of links to it. */
  readonly size: number;
}

const inlined = (codec: number, bytes: Uint8Array) => makeCid(1, codec, createDigest(identity.code, bytes));

/** Returns the CID of a block under these settings. Raw blocks always have version 1. */
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

/** Encodes a node, passes it to the sink, and returns what its parent needs. */
export async function buildNode(node: PbNode, settings: CidSettings, sink: BlockSink): Promise<Built> {
  const bytes = encodePb(node);
  const cid = await cidOf(dagPb, bytes, settings);
  await sink({ cid, bytes }, node.links);
  return { cid, size: cumulativeSize({ length: bytes.length, links: node.links }) };
}
