/** Imports files and symlinks. */

import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { encodeUnixfs } from "../../formats/unixfs/format.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";
import { balanced, trickle } from "./layout.ts";
import { type FilePart, Leaves } from "./leaves.ts";

export interface FileSettings extends CidSettings {
  readonly chunker: () => Chunker;
  readonly rawLeaves: boolean;
  readonly trickle: boolean;
}

/**
 * Chunks, hashes and stores a file as it comes, in constant memory. The CID is the one that the reference gives under
 * the same settings. With `backing`, the path or URL of a file with the same bytes, leaves say where in it they are.
 */
export async function importFile(
  source: AsyncIterable<Uint8Array>,
  settings: FileSettings,
  sink: BlockSink,
  backing?: string,
): Promise<FilePart> {
  const leaves = new Leaves(source, { ...settings, leafType: settings.trickle ? "Raw" : "File", backing }, sink);
  try {
    return await (settings.trickle ? trickle : balanced)(leaves, settings, sink);
  } finally {
    await leaves.close();
  }
}

export function importSymlink(target: Uint8Array, settings: CidSettings, sink: BlockSink): Promise<Built> {
  return buildNode({ data: encodeUnixfs({ type: "Symlink", data: target }), links: [] }, settings, sink);
}
