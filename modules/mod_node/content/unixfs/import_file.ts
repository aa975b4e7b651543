/** Imports files and symlinks. */

import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { encodeUnixfs, type ModeAndTime, type UnixTime } from "../../formats/unixfs/format.ts";
import { type BlockSink, type Built, buildNode, type CidSettings } from "./build.ts";
import { balanced, type LayoutSettings, trickle } from "./layout.ts";
import { type FilePart, Leaves } from "./leaves.ts";

export interface FileSettings extends LayoutSettings {
  readonly chunker: () => Chunker;
  readonly rawLeaves: boolean;
  readonly trickle: boolean;
}

/** Properties of a file other than its bytes. */
export interface FileKnown {
  /** Path or URL of a file with the same bytes. Leaves store their offsets in that file. */
  readonly backing?: string | undefined;
  /** Cannot be used with raw leaves. */
  readonly facts?: ModeAndTime | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Splits, hashes and stores a file as it arrives, in constant memory. The CID is the same as that
 * of the reference under the same settings.
 */
export async function importFile(
  source: AsyncIterable<Uint8Array>,
  settings: FileSettings,
  sink: BlockSink,
  { backing, facts, signal }: FileKnown = {},
): Promise<FilePart> {
  const { trickle: isTrickle } = settings;
  // A trickle DAG has a node above its leaves even for one chunk.
  const leafFacts = isTrickle ? undefined : facts;
  const leafType = isTrickle ? "Raw" : "File";
  const leaves = new Leaves(source, { ...settings, leafType, backing, facts: leafFacts, signal }, sink);
  try {
    return await (isTrickle ? trickle : balanced)(leaves, settings, sink, facts);
  } finally {
    await leaves.close();
  }
}

/**
 * Imports a symlink. It may have a time. It has no mode, because permissions of symlinks are not
 * used.
 */
export function importSymlink(
  target: Uint8Array,
  settings: CidSettings,
  sink: BlockSink,
  mtime?: UnixTime,
): Promise<Built> {
  return buildNode({ data: encodeUnixfs({ type: "Symlink", data: target, mtime }), links: [] }, settings, sink);
}
