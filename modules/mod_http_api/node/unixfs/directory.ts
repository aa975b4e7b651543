/** Directories from their entries. */
import type { PbLink } from "../dag/pb.ts";
import { NodeError } from "../errors.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";
import { encodeUnixfs } from "./format.ts";
import { buildShards } from "./shard.ts";

const plain = encodeUnixfs({ type: "Directory" });

/** `sharded` makes a trie of every directory that has entries, as `Experimental.ShardingEnabled` does. */
export function buildDirectory(
  links: readonly PbLink[],
  settings: CidSettings & { readonly sharded: boolean },
  sink: BlockSink,
): Promise<Built> {
  if (settings.sharded && links.length > 0) return buildShards(links, settings, sink);
  return buildNode({ data: plain, links }, settings, sink);
}

export const duplicateEntry = (): NodeError => new NodeError("directory already has entry by that name");
