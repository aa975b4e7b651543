/** From bytes of a node to its block: which CID it gets, and where it goes. */

import type { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { dagPb } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashUnavailable, identity, sha256 } from "../../formats/cid/hashes.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { cumulativeSize, encodePb, type PbNode } from "../../formats/dag_pb/dag_pb.ts";
import type { Block } from "../../storage/blockstore/store.ts";

/** How CIDs of new nodes are made ("CID rules" of storage section 2). */
export interface CidSettings {
  readonly version: 0 | 1;
  readonly hash: HashFunction;
  /** Nodes of at most so many bytes go into their CID; undefined: none does. */
  readonly inlineLimit?: number | undefined;
}

export const defaultCid: CidSettings = { version: 0, hash: sha256 };

/**
 * Takes new blocks, with the links in them to such as went before; what it returns is waited for: that is the
 * backpressure of the disk.
 */
export type BlockSink = (block: Block, links?: readonly { readonly cid: CID }[]) => Promise<void> | undefined;

/** What a parent has to know of a node. */
export interface Built {
  readonly cid: CID;
  /** The block and all below it, in bytes: the Tsize of links to it. */
  readonly size: number;
}

const inlined = (codec: number, bytes: Uint8Array) => makeCid(1, codec, createDigest(identity.code, bytes));

/** The CID of a block under these settings. Raw blocks are version 1 always. */
export function cidOf(codec: number, bytes: Uint8Array, settings: CidSettings): CID | Promise<CID> {
  const { version, hash, inlineLimit } = settings;
  if (inlineLimit !== undefined && bytes.length <= inlineLimit) return inlined(codec, bytes);
  if (hash.code === identity.code) return inlined(codec, bytes);
  if (hash.digest === undefined) throw hashUnavailable(hash.code);
  const of = (digest: Uint8Array) => {
    const made = createDigest(hash.code, digest);
    return makeCid(codec === dagPb ? version : 1, codec, made);
  };
  const digest = hash.digest(bytes);
  return digest instanceof Promise ? digest.then(of) : of(digest);
}

/** Writes a node and says what its parent has to know. */
export async function buildNode(node: PbNode, settings: CidSettings, sink: BlockSink): Promise<Built> {
  const bytes = encodePb(node);
  const cid = await cidOf(dagPb, bytes, settings);
  await sink({ cid, bytes }, node.links);
  return { cid, size: cumulativeSize({ length: bytes.length, links: node.links }) };
}
